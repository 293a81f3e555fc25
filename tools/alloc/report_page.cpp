// A report's page: what is on it and how it looks.
#include "taper/tools/alloc/report_parts.h"

namespace taper::tools {

const char* const kReportPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory</title>
<style>
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f5f6f8; --ink: #1b1e24; --dim: #5b6270; --line: #d8dce3;
  --mapped: #dfe4ec; --accent: #0b62c4; --mark: #c2185b;
  --reserved: #0b62c4; --allocated: #00865e; --requested: #c77700; --pending: #b0468f; --others: #7b8494;
  --few: #d9541e; --some: #7fa8d6; --full: #2f6fb5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1c2027; --ink: #e6e9ee; --dim: #9aa3b0; --line: #363d48;
    --mapped: #2c333e; --accent: #6cb0f5; --mark: #ff6fa3;
    --reserved: #6cb0f5; --allocated: #3ecf9e; --requested: #f2b04a; --pending: #e391c8; --others: #8a94a3;
    --few: #ff8a57; --some: #44698f; --full: #7db4ee;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px 24px 40px; max-width: 1600px; background: var(--page); color: var(--ink);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 20px; margin: 0; }
h2 { font-size: 14px; margin: 0; }
.dim { color: var(--dim); }
header, .bar { display: flex; flex-wrap: wrap; gap: 6px 16px; align-items: baseline; }
section { margin-top: 14px; padding: 10px 14px 12px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
canvas { display: block; width: 100%; cursor: crosshair; margin-top: 6px; border-radius: 3px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
label, .legend { display: inline-flex; gap: 6px; align-items: center; }
.legend i { width: 11px; height: 11px; border-radius: 2px; border: 1px solid #8886; flex: none; }
.legend i.line { width: 26px; border: 0; border-radius: 0; }
.legend b { font-weight: 600; font-variant-numeric: tabular-nums; }
.fill { flex: 1; }
button, select { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 5px;
  padding: 2px 9px; cursor: pointer; }
button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: var(--page); }
input[type=range] { width: 100%; accent-color: var(--accent); margin: 4px 0; }
#when { padding: 0 16px 0 78px; }
.scroll { overflow: auto; max-height: 340px; margin-top: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 3px 18px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
th { color: var(--dim); font-weight: 600; position: sticky; top: 0; background: var(--panel); }
td.n, th.n { text-align: right; }
td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 120px; }
kbd { border: 1px solid var(--line); border-radius: 4px; padding: 0 4px; font-size: 12px; }
#tip { position: fixed; pointer-events: none; background: var(--page); color: var(--ink); border: 1px solid var(--line);
  border-radius: 5px; padding: 4px 8px; font-size: 12px; white-space: pre; box-shadow: 0 2px 8px #0004; z-index: 2; }
#tip[hidden] { display: none; }
.bad { color: var(--few); font-weight: 600; }
</style>
</head>
<body>
<header>
  <h1 id="title"></h1><span id="about" class="dim"></span>
</header>
<div class="bar" style="margin-top:8px">
  <span id="policies" class="bar" role="group" aria-label="Policy"></span>
  <span class="fill"></span>
  <label>colour by <select id="colour"><option>op</option><option>module</option><option>size</option><option>stream</option></select></label>
  <button id="all" title="0">show all</button>
</div>
<p id="summary" class="bar" style="margin:8px 0 0"></p>

<section>
  <div class="bar"><h2>Bytes over events</h2><span id="curveLegend" class="bar"></span></div>
  <canvas id="curves" height="210" tabindex="0" aria-label="Bytes over events"></canvas>
</section>

<section>
  <div class="bar"><h2>Blocks: address over events</h2><span id="blockLegend" class="bar"></span></div>
  <canvas id="map" height="330" tabindex="0" aria-label="Blocks, address over events"></canvas>
  <div id="when"><input type="range" id="time" min="0" value="0" step="1" aria-label="Event"></div>
  <div class="bar dim">
    <span>drag over a picture: look closer &nbsp; double click or <kbd>0</kbd>: all &nbsp; <kbd>←</kbd> <kbd>→</kbd>: one event,
      with <kbd>Shift</kbd> a hundredth &nbsp; <kbd>+</kbd> <kbd>−</kbd>: closer, wider &nbsp; <kbd>p</kbd>: the peak</span>
  </div>
</section>

<section>
  <div class="bar"><h2>Addresses at event <span id="now"></span></h2><span id="nowLegend" class="bar"></span></div>
  <canvas id="strip" height="74" aria-label="Addresses at this event"></canvas>
  <div class="bar" style="margin-top:8px"><h2>Pages</h2><span id="pageLegend" class="bar"></span></div>
  <canvas id="pages" height="120" tabindex="0" aria-label="Pages at this event; arrow keys choose one"></canvas>
</section>

<section>
  <div class="bar"><h2 id="pinned"></h2><span id="pinnedAbout" class="dim"></span></div>
  <div class="scroll"><table id="pins"></table></div>
</section>

<section>
  <h2>Policies compared</h2>
  <div class="scroll" style="max-height:none"><table id="metrics"></table></div>
</section>
<div id="tip" hidden></div>
)html";

}  // namespace taper::tools
