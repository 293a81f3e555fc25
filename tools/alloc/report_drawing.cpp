// The first half of a report's script: reads the data, and draws curves, blocks and addresses.
#include "taper/tools/alloc/report_parts.h"

namespace taper::tools {

const char* const kReportDrawing = R"js('use strict';
const $ = id => document.getElementById(id);
const data = JSON.parse($('data').textContent);

// --- the data ---
function bytesOf(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}
function words(text) {  // differences, zigzag, in groups of 7 bits
  const raw = bytesOf(text), out = [];
  for (let i = 0, before = 0; i < raw.length;) {
    let w = 0, shift = 0;
    do w |= (raw[i] & 127) << shift, shift += 7; while (raw[i++] & 128);
    before = before + (w >>> 1 ^ -(w & 1)) >>> 0;
    out.push(before);
  }
  return Uint32Array.from(out);
}
const floats = text => new Float32Array(bytesOf(text).buffer);
const B = data.blocks;
for (const k of ['number', 'begin', 'end', 'size', 'site', 'entry', 'stream']) B[k] = words(B[k]);
const CURVES = ['reserved', 'allocated', 'requested', 'pending'];
for (const run of data.runs) {
  for (const k in run.curves) run.curves[k] = {low: floats(run.curves[k].low), high: floats(run.curves[k].high)};
  for (const k of ['at', 'bytes', 'ranges']) run[k] = words(run[k]);
  if (run.grid) run.grid.cells = bytesOf(run.grid.cells);
}
const EVENTS = Math.max(1, data.events);

// --- words ---
function size(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let u = 0;
  for (; n >= 1024 && u < 5; ++u) n /= 1024;
  return (u === 0 || n >= 1000 ? Math.round(n) : n >= 100 ? n.toFixed(1) : n.toFixed(2)) + ' ' + units[u];
}
const count = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
const percent = x => isFinite(x) ? (100 * x).toFixed(x < 0.1 ? 2 : 1) + ' %' : '–';
const styles = () => getComputedStyle(document.documentElement);
let css = {};
function readColours() {
  const s = styles();
  for (const k of ['page', 'panel', 'ink', 'dim', 'line', 'mapped', 'accent', 'mark', 'reserved', 'allocated', 'requested',
    'pending', 'others', 'few', 'some', 'full']) css[k] = s.getPropertyValue('--' + k).trim();
}
function element(tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}
function legend(into, entries) {
  into.replaceChildren(...entries.map(([colour, name, value, line]) => {
    const e = element('span', undefined, 'legend');
    if (colour) e.append(Object.assign(element('i'), {style: 'background:' + colour, className: line || ''}));
    e.append(element('span', name));
    if (value !== undefined) e.append(element('b', value));
    return e;
  }));
}

// --- what is looked at ---
let run = data.runs[0], time = 0, chosen = null;  // chosen: [position, bytes] of a page or a few
const view = {e0: 0, e1: EVENTS, a0: 0, a1: 1};
const LEFT = 78, RIGHT = 16;

function offsetOf(position) {  // the address at a position of the axis
  let best = run.spans[0] || [0, 0, 0];
  for (const s of run.spans) if (s[2] <= position) best = s;
  return best[0] + Math.min(position - best[2], best[1]);
}
function pointAt(event) {
  const n = run.curves.reserved.high.length;
  return Math.max(0, Math.min(n - 1, Math.floor(event / run.perPoint)));
}
const placed = i => run.bytes[i] > 0;
const live = i => B.begin[i] <= time && time < B.end[i] && placed(i);
const begins = i => run.at[i] * run.unit;
const takes = i => run.bytes[i] * run.unit;

// --- colours of blocks ---
const PALETTE = ['#4e79a7', '#f28e2b', '#59a14f', '#b07aa1', '#e15759', '#3fa7a3', '#d4a72c', '#9c755f'], OTHER = '#8b939f';
let keyOf = null, colourOf = new Map(), named = [];
function chooseColours() {
  const by = $('colour').value;
  if (by === 'op') keyOf = i => data.sites[B.site[i]][0] || 'not known';
  else if (by === 'module') keyOf = i => data.sites[B.site[i]][1] || 'not known';
  else if (by === 'stream') keyOf = i => 'stream ' + B.stream[i];
  else keyOf = i => {
    const bytes = B.sizes[B.size[i]];
    return bytes < 65536 ? 'below 64 KiB' : bytes < 1 << 20 ? 'below 1 MiB' : bytes < 8 << 20 ? 'below 8 MiB' :
      bytes < 64 << 20 ? 'below 64 MiB' : '64 MiB and more';
  };
  const area = new Map();
  for (let i = 0; i < B.count; ++i) {
    const k = keyOf(i);
    area.set(k, (area.get(k) || 0) + B.sizes[B.size[i]] * (B.end[i] - B.begin[i]));
  }
  const order = [...area].sort((a, b) => b[1] - a[1]).map(x => x[0]);
  colourOf = new Map(order.slice(0, PALETTE.length).map((k, n) => [k, PALETTE[n]]));
  named = order.slice(0, PALETTE.length).map(k => [colourOf.get(k), k]);
  if (order.length > PALETTE.length) named.push([OTHER, (order.length - PALETTE.length) + ' others']);
  legend($('blockLegend'), named);
}
const colour = i => colourOf.get(keyOf(i)) || OTHER;

// --- drawing ---
function canvas(id) {
  const c = $(id), scale = window.devicePixelRatio || 1;
  c.dataset.height = c.dataset.height || c.getAttribute('height');
  const w = c.clientWidth, h = +c.dataset.height;
  c.style.height = h + 'px';
  c.width = Math.round(w * scale), c.height = Math.round(h * scale);
  const g = c.getContext('2d');
  g.scale(scale, scale);
  g.clearRect(0, 0, w, h);
  g.font = '12px system-ui, sans-serif';
  return {g, w, h};
}
const eventX = (event, w) => LEFT + (event - view.e0) / (view.e1 - view.e0) * (w - LEFT - RIGHT);
const xEvent = (x, w) => view.e0 + (x - LEFT) / (w - LEFT - RIGHT) * (view.e1 - view.e0);

function ticks(low, high, most, binary) {
  let step = 1;
  if (binary) {
    while ((high - low) / step > most) step *= 2;
  } else {
    for (const f = [2, 2.5, 2]; (high - low) / step > most; step *= f[0], f.push(f.shift()));
  }
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) out.push(v);
  return out;
}
function eventAxis(g, w, y0, y1) {
  g.textAlign = 'center', g.textBaseline = 'top';
  for (const e of ticks(view.e0, view.e1, 10, false)) {
    const x = eventX(e, w);
    g.strokeStyle = css.line, g.lineWidth = 1;
    g.beginPath(), g.moveTo(x, y0), g.lineTo(x, y1 + 4), g.stroke();
    g.fillStyle = css.dim;
    if (x < w - 26) g.fillText(count(e), x, y1 + 6);
  }
  g.textAlign = 'left', g.fillText('event', 4, y1 + 6);
}
function stepsAxis(g, w, y0, y1) {
  const shown = data.steps.filter(s => view.e0 <= s && s <= view.e1);
  if (shown.length > 60) return;
  g.strokeStyle = css.dim, g.setLineDash([2, 3]);
  for (const s of shown) {
    const x = Math.round(eventX(s, w)) + 0.5;
    g.beginPath(), g.moveTo(x, y0), g.lineTo(x, y1), g.stroke();
  }
  g.setLineDash([]);
}
function cursor(g, w, y0, y1) {
  const x = eventX(time, w);
  if (x < LEFT || x > w - RIGHT) return;
  g.strokeStyle = css.ink, g.lineWidth = 1.2;
  g.beginPath(), g.moveTo(x, y0), g.lineTo(x, y1), g.stroke();
}
// A line along the most of each point, dashed as `dash` says; `filled` down to nothing.
function curve(g, w, of, perPoint, colour, Y, width, dash, filled) {
  const c = of.high, from = Math.max(0, Math.floor(view.e0 / perPoint) - 1), to = Math.min(c.length, Math.ceil(view.e1 / perPoint) + 1);
  if (from >= to) return;
  const X = i => eventX(Math.min(i * perPoint, EVENTS), w);
  g.beginPath(), g.moveTo(X(from), Y(c[from]));
  for (let i = from; i < to; ++i) g.lineTo(X(i), Y(c[i])), g.lineTo(X(i + 1), Y(c[i]));
  g.strokeStyle = colour, g.lineWidth = width, g.setLineDash(dash), g.stroke(), g.setLineDash([]);
  if (!filled) return;
  g.lineTo(X(to), Y(0)), g.lineTo(X(from), Y(0));
  g.globalAlpha = 0.3, g.fillStyle = colour, g.fill(), g.globalAlpha = 1;
}
// The other policies' lines differ by their dashes, in the legend too.
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 6], [12, 4]];
const otherRuns = () => data.runs.filter(r => r !== run);
const dashOf = n => DASHES[n % DASHES.length];
function dashed(colour, dash) {  // as a background
  let at = 0;
  const parts = (dash.length ? dash : [1, 0]).map((n, i) => `${i % 2 ? '#0000' : colour} ${at}px ${at += n}px`);
  return `repeating-linear-gradient(90deg, ${parts.join(', ')}) center / 100% 3px no-repeat`;
}
// Each policy's name at the right end of its line, above it; lines that are one share a name, and names
// that would meet are moved apart.
function nameLines(g, w, y0, Y) {
  const ends = [];
  for (const r of data.runs) {
    const c = r.curves.reserved.high, i = Math.min(c.length - 1, Math.ceil(view.e1 / r.perPoint) - 1);
    const y = Y(c[i] || 0) - 6, same = ends.find(e => Math.abs(e.y - y) < 1);
    if (same) same.name += ', ' + r.policy, same.own = same.own || r === run;
    else ends.push({name: r.policy, own: r === run, y});
  }
  ends.sort((a, b) => b.y - a.y);
  let below = Infinity;
  for (const e of ends) below = e.y = Math.min(e.y, below - 13);
  let above = y0 + 10;
  for (const e of ends.reverse()) e.y = Math.max(e.y, above), above = e.y + 13;
  g.textAlign = 'right', g.textBaseline = 'alphabetic', g.lineJoin = 'round';
  for (const e of ends) {
    g.strokeStyle = css.panel, g.lineWidth = 3, g.strokeText(e.name, w - RIGHT - 4, e.y);
    g.fillStyle = e.own ? css.reserved : css.dim, g.fillText(e.name, w - RIGHT - 4, e.y);
  }
}
function drawCurves() {
  const {g, w, h} = canvas('curves'), y0 = 8, y1 = h - 24;
  let top = 1;
  for (const r of data.runs) for (const v of r.curves.reserved.high) top = Math.max(top, v);
  for (const v of run.curves.requested.high) top = Math.max(top, v);
  top *= 1.1;  // with room for a name
  const Y = v => y1 - v / top * (y1 - y0);
  eventAxis(g, w, y0, y1);
  stepsAxis(g, w, y0, y1);
  g.textAlign = 'right', g.textBaseline = 'middle';
  for (const v of ticks(0, top, 5, true)) {
    g.strokeStyle = css.line;
    g.beginPath(), g.moveTo(LEFT, Y(v)), g.lineTo(w - RIGHT, Y(v)), g.stroke();
    g.fillStyle = css.dim, g.fillText(size(v), LEFT - 8, Y(v));
  }
  g.save();
  g.beginPath(), g.rect(LEFT, 0, w - LEFT - RIGHT, h), g.clip();
  otherRuns().forEach((r, n) => curve(g, w, r.curves.reserved, r.perPoint, css.others, Y, 1.2, dashOf(n), false));
  // Requested lies on allocated, mostly: dashes over a filled line show both.
  const line = (k, width, dash, filled) => curve(g, w, run.curves[k], run.perPoint, css[k], Y, width, dash, filled);
  const crowded = (view.e1 - view.e0) / run.perPoint > w / 4;
  line('allocated', crowded ? 1 : 2.5, [], true);
  line('requested', crowded ? 1 : 1.3, [6, 6], false);
  line('pending', 1.5, [], false);
  line('reserved', 1.8, [], false);
  nameLines(g, w, y0, Y);
  cursor(g, w, y0, y1);
  g.restore();
}
// The map of blocks is drawn once for each view; the cursor comes on top.
let picture = null;
const addressY = (p, y0, y1) => y1 - (p - view.a0) / (view.a1 - view.a0) * (y1 - y0);
function paintBlocks(g, w, y0, y1) {
  const X = e => eventX(e, w), Y = p => addressY(p, y0, y1);
  g.fillStyle = css.mapped;
  for (let i = 0; i < run.ranges.length; i += 4) {
    const p = run.ranges[i] * run.unit, n = run.ranges[i + 1] * run.unit;
    g.fillRect(X(run.ranges[i + 2]), Y(p + n), X(run.ranges[i + 3]) - X(run.ranges[i + 2]), Y(p) - Y(p + n));
  }
  if (run.grid) {
    const {columns, rows, cells} = run.grid, dw = EVENTS / columns, dh = run.total / rows;
    g.fillStyle = OTHER;
    for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) {
      const v = cells[r * columns + c];
      if (v === 0) continue;
      g.globalAlpha = v / 255;
      g.fillRect(X(c * dw), Y((r + 1) * dh), X((c + 1) * dw) - X(c * dw), Y(r * dh) - Y((r + 1) * dh));
    }
    g.globalAlpha = 1;
  }
  for (let i = 0; i < B.count; ++i) {
    if (!placed(i) || B.end[i] < view.e0 || B.begin[i] > view.e1) continue;
    const p = begins(i), n = takes(i);
    if (p + n < view.a0 || p > view.a1) continue;
    const x = X(B.begin[i]), bw = Math.max(X(B.end[i]) - x, 0.3), y = Y(p + n), bh = Math.max(Y(p) - y, 0.3);
    g.fillStyle = colour(i);
    // A gap shows where one block ends and the next begins, if there is room for it.
    g.fillRect(x, y, bw > 4 ? bw - 0.6 : bw, bh > 4 ? bh - 0.6 : bh);
  }
}
function drawMap() {
  const {g, w, h} = canvas('map'), y0 = 8, y1 = h - 24;
  const key = [w, view.e0, view.e1, view.a0, view.a1, data.runs.indexOf(run), $('colour').value, css.page,
    window.devicePixelRatio].join();
  if (!picture || picture.key !== key) {
    picture = {key, image: document.createElement('canvas')};
    picture.image.width = g.canvas.width, picture.image.height = g.canvas.height;
    const p = picture.image.getContext('2d');
    p.scale(g.canvas.width / w, g.canvas.height / h);
    p.beginPath(), p.rect(LEFT, y0, w - LEFT - RIGHT, y1 - y0), p.clip();
    p.fillStyle = css.page, p.fillRect(0, 0, w, h);
    paintBlocks(p, w, y0, y1);
    stepsAxis(p, w, y0, y1);
  }
  eventAxis(g, w, y1, y1);
  g.drawImage(picture.image, 0, 0, w, h);
  g.textAlign = 'right', g.textBaseline = 'middle', g.fillStyle = css.dim;
  let last = h;
  for (const p of ticks(view.a0, view.a1, 6, true)) {
    const y = addressY(p, y0, y1);
    if (last - y < 14) continue;
    last = y;
    g.fillText(size(offsetOf(p)), LEFT - 8, Math.min(y, y1 - 5));
  }
  for (const s of run.spans.slice(1)) {  // addresses left out before this one
    const y = addressY(s[2], y0, y1);
    if (y < y0 || y > y1) continue;
    g.strokeStyle = css.dim, g.setLineDash([1, 4]);
    g.beginPath(), g.moveTo(LEFT, y), g.lineTo(w - RIGHT, y), g.stroke(), g.setLineDash([]);
    g.fillText(size(s[0]), LEFT - 8, y);
  }
  cursor(g, w, y0, y1);
  if (chosen) {
    const top = Math.max(y0, addressY(chosen[0] + chosen[1], y0, y1)), low = Math.min(y1, addressY(chosen[0], y0, y1));
    g.fillStyle = css.mark;
    if (low > top) g.fillRect(LEFT - 4, Math.min(top, low - 2), 4, Math.max(2, low - top));
  }
}

// What is out at this event, and the ranges that are mapped.
function here() {
  const blocks = [];
  for (let i = 0; i < B.count; ++i) if (live(i)) blocks.push(i);
  blocks.sort((a, b) => run.at[a] - run.at[b]);
  const ranges = [];
  for (let i = 0; i < run.ranges.length; i += 4) {
    if (run.ranges[i + 2] <= time && time < run.ranges[i + 3]) ranges.push([run.ranges[i] * run.unit, run.ranges[i + 1] * run.unit]);
  }
  ranges.sort((a, b) => a[0] - b[0]);
  return {blocks, ranges};
}
const isExact = () => data.exact.some(w => w[0] <= time && time < w[1]);
function restIn(position, bytes) {  // of blocks not shown one by one, about
  if (!run.grid || isExact()) return 0;
  const {columns, rows, cells} = run.grid, dh = run.total / rows;
  const c = Math.min(columns - 1, Math.floor(time / EVENTS * columns));
  let sum = 0;
  for (let r = Math.floor(position / dh); r < rows && r * dh < position + bytes; ++r) {
    const part = Math.min(position + bytes, (r + 1) * dh) - Math.max(position, r * dh);
    sum += Math.max(0, part) * cells[r * columns + c] / 255;
  }
  return sum;
}
function largestGap(now) {
  if (!isExact()) return null;
  let best = null, k = 0;
  for (const [p, n] of now.ranges) {
    let at = p;
    const gap = to => { if (to > at && (!best || to - at > best[1])) best = [at, to - at]; };
    while (k < now.blocks.length && begins(now.blocks[k]) < p) ++k;
    for (; k < now.blocks.length && begins(now.blocks[k]) < p + n; ++k) {
      gap(begins(now.blocks[k]));
      at = Math.max(at, begins(now.blocks[k]) + takes(now.blocks[k]));
    }
    gap(p + n);
  }
  return best;
}
function drawStrip(now) {
  const {g, w} = canvas('strip'), y0 = 4, y1 = 40, X = p => 8 + (p - view.a0) / (view.a1 - view.a0) * (w - 16);
  g.fillStyle = css.page, g.fillRect(8, y0, w - 16, y1 - y0);
  g.save();
  g.beginPath(), g.rect(8, 0, w - 16, 60), g.clip();
  g.fillStyle = css.mapped;
  for (const [p, n] of now.ranges) g.fillRect(X(p), y0, X(p + n) - X(p), y1 - y0);
  if (run.grid) {
    const dh = run.total / run.grid.rows;
    g.fillStyle = OTHER;
    for (let r = 0; r < run.grid.rows; ++r) {
      g.globalAlpha = Math.min(1, restIn(r * dh, dh) / dh);
      g.fillRect(X(r * dh), y0, X(dh) - X(0), y1 - y0);
    }
    g.globalAlpha = 1;
  }
  for (const i of now.blocks) {
    const x = X(begins(i)), bw = X(begins(i) + takes(i)) - x;
    g.fillStyle = colour(i);
    g.fillRect(x, y0, Math.max(bw > 3 ? bw - 0.7 : bw, 0.4), y1 - y0);
  }
  const gap = largestGap(now);
  if (gap) {
    g.fillStyle = css.mark;
    g.fillRect(X(gap[0]), y1 + 2, Math.max(2, X(gap[0] + gap[1]) - X(gap[0])), 3);
  }
  if (chosen) {
    g.strokeStyle = css.mark, g.lineWidth = 2;
    g.strokeRect(X(chosen[0]), y0 - 2, Math.max(2, X(chosen[0] + chosen[1]) - X(chosen[0])), y1 - y0 + 4);
  }
  g.restore();
  g.textBaseline = 'top', g.fillStyle = css.dim;
  for (const p of ticks(view.a0, view.a1, 8, true)) {
    g.textAlign = p === 0 ? 'left' : 'center';
    if (X(p) < w - 30) g.fillText(size(offsetOf(p)), X(p), y1 + 12);
  }
  const entries = [];
  if (now.ranges.length) entries.push([css.mapped, 'reserved, free']);
  if (gap) entries.push([css.mark, 'largest free run', size(gap[1])]);
  entries.push(['', 'blocks out', count(now.blocks.length)]);
  if (!isExact()) {
    entries.push([OTHER, `other blocks, on average over ${count(EVENTS / run.grid.columns)} events; near the peaks each is shown`]);
  }
  legend($('nowLegend'), entries);
}

)js";

}  // namespace taper::tools
