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
)html";

const char* const kReportBody = R"html(:root { --mapped: #dfe4ec; --some: #7fa8d6; --full: #2f6fb5;
  --reserved: #0b62c4; --allocated: #00865e; --requested: #c77700; --pending: #b0468f; --others: #7b8494; }
@media (prefers-color-scheme: dark) {
  :root { --mapped: #2c333e; --some: #44698f; --full: #7db4ee;
    --reserved: #6cb0f5; --allocated: #3ecf9e; --requested: #f2b04a; --pending: #e391c8; --others: #8a94a3; }
}
input[type=range] { width: 100%; accent-color: var(--accent); margin: 4px 0; }
#when { padding: 0 16px 0 78px; }
td.wide { white-space: normal; overflow-wrap: anywhere; min-width: 120px; }
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
