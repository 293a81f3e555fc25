// The tape's page: what is on it and how it looks.
#include "taper/tools/tape/page_parts.h"

namespace taper::tools {

const char* const kTapeBody =
    R"html(:root { --activation: #0b62c4; --parameter: #00865e; --datum: #c77700; --again: #b9c3d1; --gradient: #b0468f; --chosen: #e4edf8; }
@media (prefers-color-scheme: dark) {
  :root { --activation: #6cb0f5; --parameter: #3ecf9e; --datum: #f2b04a; --again: #495363; --gradient: #e391c8; --chosen: #243248; }
}
input[type=search] { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: 5px;
  padding: 2px 9px; width: 22em; max-width: 100%; }
#split { display: grid; grid-template-columns: minmax(0, 1fr) 330px; gap: 14px; margin-top: 6px; }
#rows { overflow: auto; height: min(62vh, 640px); min-height: 220px; position: relative; font-variant-numeric: tabular-nums; }
#sizer { position: relative; min-width: 560px; }
.row { position: absolute; left: 0; right: 0; height: 22px; line-height: 22px; display: grid; cursor: pointer; gap: 0 10px;
  grid-template-columns: minmax(150px, 1fr) minmax(90px, 0.8fr) minmax(110px, 1fr) minmax(120px, 1fr) minmax(120px, 1.6fr) 82px; }
.row > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row:hover, .row.chosen { background: var(--chosen); }
.row.head { position: sticky; top: 0; z-index: 1; background: var(--panel); color: var(--dim); font-weight: 600; cursor: default; }
.row.peak { box-shadow: inset 0 -2px var(--mark); }
.row .n { text-align: right; }
.row b { font-weight: 600; }
.row em { font-style: normal; color: var(--mark); font-weight: 600; }
.row .saves { display: flex; gap: 8px; }
.saves .meter { flex: 1; }
.meter { display: flex; height: 12px; margin-top: 5px; }
.meter i { display: block; height: 100%; min-width: 1px; }
.meter i:first-child { border-radius: 2px 0 0 2px; }
#details { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; overflow: auto; max-height: min(62vh, 640px);
  border-left: 1px solid var(--line); padding-left: 14px; margin: 0; font-family: inherit; }
td.name { white-space: nowrap; }
td.share { width: 34%; min-width: 110px; }
tbody tr { cursor: pointer; }
tbody tr:hover { background: var(--chosen); }
@media (max-width: 1000px) {
  body { padding: 12px 12px 32px; }
  #split { grid-template-columns: minmax(0, 1fr); }
  #details { border-left: 0; border-top: 1px solid var(--line); padding: 8px 0 0; max-height: none; }
  #rows { height: 50vh; }
}
@media (max-width: 700px) {
  #sizer { min-width: 0; }
  .row { grid-template-columns: minmax(120px, 1.3fr) minmax(60px, 1fr) minmax(80px, 1fr) 72px; }
  .row > .wide { display: none; }
}
</style>
</head>
<body>
<header><h1 id="title"></h1><span id="about" class="dim"></span></header>
<p id="summary" class="bar" style="margin:8px 0 0"></p>

<section>
  <div class="bar"><h2>Bytes held over a step</h2><span id="curveLegend" class="bar"></span><span class="fill"></span>
    <button id="toPeak" title="p">to the peak</button></div>
  <canvas id="curve" height="190" tabindex="0" aria-label="Bytes held, forward and then backward"></canvas>
</section>

<section>
  <div class="bar"><h2>Entries</h2>
    <label>show <input type="search" id="filter" placeholder="scope, op or line" aria-label="Filter entries"></label>
    <span id="shown" class="dim"></span><span class="fill"></span><span id="rowLegend" class="bar"></span></div>
  <div id="split">
    <div id="rows" tabindex="0" role="listbox" aria-label="Entries by index"><div class="row head">
      <span>entry</span><span class="wide">line</span><span>scope</span><span class="wide">output</span><span>saves</span><span class="n">bytes</span></div>
      <div id="sizer"></div></div>
    <pre id="details"></pre>
  </div>
  <div class="bar dim" style="margin-top:6px"><span><kbd>↑</kbd> <kbd>↓</kbd>: one entry &nbsp; <kbd>p</kbd>: the peak &nbsp;
    <kbd>/</kbd>: filter &nbsp; <kbd>Esc</kbd>: all</span></div>
</section>

<section>
  <div class="bar"><h2>Bytes saved by</h2><span id="by" class="bar" role="group" aria-label="Group by"></span>
    <span class="dim">each storage counted where it is saved first; a row shows its entries</span></div>
  <div class="scroll" style="max-height:460px"><table id="groups"></table></div>
</section>
<div id="tip" hidden></div>
)html";

}  // namespace taper::tools
