// How our HTML pages look: colours for light and dark, type, tables, and the box that follows the
// mouse.
#pragma once

namespace taper::tools {

// Stands inside <style>; what a page alone has stands behind it. `--few` is for what is wrong.
inline constexpr const char* kPageStyle = R"css(:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f5f6f8; --ink: #1b1e24; --dim: #5b6270; --line: #d8dce3; --accent: #0b62c4; --mark: #c2185b;
  --few: #d9541e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1c2027; --ink: #e6e9ee; --dim: #9aa3b0; --line: #363d48; --accent: #6cb0f5; --mark: #ff6fa3;
    --few: #ff8a57;
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
.scroll { overflow: auto; max-height: 340px; margin-top: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 3px 18px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
th { color: var(--dim); font-weight: 600; position: sticky; top: 0; background: var(--panel); }
td.n, th.n { text-align: right; }
kbd { border: 1px solid var(--line); border-radius: 4px; padding: 0 4px; font-size: 12px; }
#tip { position: fixed; pointer-events: none; background: var(--page); color: var(--ink); border: 1px solid var(--line);
  border-radius: 5px; padding: 4px 8px; font-size: 12px; white-space: pre; box-shadow: 0 2px 8px #0004; z-index: 2; }
#tip[hidden] { display: none; }
)css";

}  // namespace taper::tools
