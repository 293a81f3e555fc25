// The second half of a report's script: pages and what pins them, figures, mouse and keys.
#include "taper/tools/alloc/report_parts.h"

namespace taper::tools {

const char* const kReportScript = R"js(// --- pages ---
let cells = null;
function layPages(now) {
  const w = $('pages').clientWidth, side = 13, columns = Math.max(8, Math.floor((w - 2) / side));
  const first = Math.floor(view.a0 / data.page), last = Math.ceil(view.a1 / data.page);
  let each = 1;
  while ((last - first) / each > columns * 12) each *= 2;
  const start = Math.floor(first / each) * each, n = Math.max(1, Math.ceil((last - start) / each));
  const used = new Float64Array(n), mapped = new Float64Array(n), bytes = each * data.page;
  const spread = (into, p, length) => {
    for (let c = Math.max(0, Math.floor(p / bytes - start / each)); c < n; ++c) {
      const low = (start + c * each) * data.page;
      if (low >= p + length) break;
      into[c] += Math.max(0, Math.min(p + length, low + bytes) - Math.max(p, low));
    }
  };
  for (const i of now.blocks) spread(used, begins(i), takes(i));
  for (const [p, length] of now.ranges) spread(mapped, p, length);
  for (let c = 0; c < n; ++c) used[c] += restIn((start + c * each) * data.page, bytes);
  cells = {side, columns, each, start, n, used, mapped, bytes};
}
function drawPages() {
  const c = cells, rows = Math.ceil(c.n / c.columns), few = c.used.filter(u => u > 0 && u < 0.1 * c.bytes).length;
  $('pages').dataset.height = rows * c.side + 2;
  const {g} = canvas('pages');
  for (let i = 0; i < c.n; ++i) {
    const x = 1 + i % c.columns * c.side, y = 1 + Math.floor(i / c.columns) * c.side, full = c.used[i] / c.bytes;
    g.fillStyle = full === 0 ? (c.mapped[i] > 0 ? css.mapped : css.page) : full < 0.1 ? css.few : full < 0.9 ? css.some : css.full;
    g.fillRect(x, y, c.side - 2, c.side - 2);
    if (chosen && chosen[0] === (c.start + i * c.each) * data.page) {
      g.strokeStyle = css.mark, g.lineWidth = 2;
      g.strokeRect(x, y, c.side - 2, c.side - 2);
    }
  }
  legend($('pageLegend'), [['', c.each === 1 ? 'one square: a page of' : `one square: ${c.each} pages,`, size(c.bytes)],
    [css.few, 'below a tenth in use', count(few)], [css.some, 'partly'], [css.full, 'nine tenths and more'], [css.mapped, 'reserved, free'],
    [css.page, 'not reserved']]);
}
function choosePage(position) {
  const i = Math.max(0, Math.min(cells.n - 1, Math.floor((position / data.page - cells.start) / cells.each)));
  chosen = [(cells.start + i * cells.each) * data.page, cells.bytes];
}
// What is reserved for the least is what one looks for.
function chooseEmptiest() {
  let best = 0;
  for (let i = 0; i < cells.n; ++i) {
    if (cells.used[i] > 0 && (cells.used[best] === 0 || cells.used[i] < cells.used[best])) best = i;
  }
  choosePage((cells.start + best * cells.each) * data.page);
}
function row(tag, fields, numeric, wide) {
  const tr = element('tr');
  fields.forEach((f, i) => tr.append(element(tag, f, numeric.includes(i) ? 'n' : wide.includes(i) ? 'wide' : '')));
  return tr;
}
function drawPins(now) {
  const [p, n] = chosen, rows = [];
  let total = 0;
  for (const i of now.blocks) {
    const inside = Math.min(p + n, begins(i) + takes(i)) - Math.max(p, begins(i));
    if (inside > 0) rows.push([inside, i]), total += inside;
  }
  rows.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const page = offsetOf(p) / data.page;
  $('pinned').textContent = n > data.page ? `What pins pages ${count(page)} to ${count(page + n / data.page - 1)}` : `What pins page ${count(page)}`;
  const rest = restIn(p, n);
  $('pinnedAbout').textContent = `at ${size(offsetOf(p))}: ${rows.length} ${rows.length === 1 ? 'block' : 'blocks'}, ${size(total)} of ${size(n)} in use` +
    (rest > 0 ? `, and about ${size(rest)} in blocks not listed` : '') + (rows.length > 200 ? '; the 200 largest' : '');
  const numeric = [0, 1, 2, 7], wide = [4, 5, 6];
  const out = [row('th', ['in the page', 'asked for', 'begins at', 'op', 'line', 'module', 'function', 'tape entry', 'events', 'stream'], numeric, [])];
  for (const [inside, i] of rows.slice(0, 200)) {
    const [op, scope, file, line, fn] = data.sites[B.site[i]];
    out.push(row('td', [size(inside), size(B.sizes[B.size[i]]), (begins(i) < p ? '− ' : '+ ') + size(Math.abs(begins(i) - p)), op || '–', file ? file + ':' + line : '–', scope || '–',
      fn || '–', B.entry[i] ? count(B.entry[i]) : '–', count(B.begin[i]) + ' – ' + (B.end[i] >= data.events ? 'end' : count(B.end[i])),
      String(B.stream[i])], numeric, wide));
  }
  $('pins').replaceChildren(...out);
}

// --- figures ---
function curveLegend() {
  const at = pointAt(time);
  const value = (r, k) => {  // of the events of a point: all that is known is the least and the most
    const low = size(r.curves[k].low[at] || 0), high = size(r.curves[k].high[at] || 0);
    return low === high ? high : low + ' – ' + high;
  };
  const swatch = {requested: [dashed(css.requested, [4, 3]), 'line']};
  const entries = CURVES.map(k => {
    const [colour, line] = swatch[k] || [css[k], ''];
    return [colour, k, value(run, k), line];
  });
  entries.push(['', 'largest free block', value(run, 'largestFree')]);
  otherRuns().forEach((r, n) => entries.push([dashed(css.others, dashOf(n)), 'reserved under ' + r.policy, value(r, 'reserved'), 'line']));
  if (run.perPoint > 1) entries.push(['', `each point: ${count(run.perPoint)} events, drawn at the most of them`]);
  legend($('curveLegend'), entries);
}
const ratio = r => r.maxLoad ? (r.reservedPeak / r.maxLoad).toFixed(4) : '–';
function summary() {
  const r = run.result, entries = [['', 'peak reserved', size(r.reservedPeak)], ['', 'peak requested', size(r.requestedPeak)],
    ['', 'peak ratio', ratio(r)], ['', 'device calls', count(r.deviceCalls)]];
  legend($('summary'), entries);
  if (!r.finished) $('summary').append(element('span', `out of memory at event ${count(r.stopped)}`, 'bad'));
}
function metrics() {
  const at = f => data.runs.map(r => f(r.peak));  // one event's figures: a curve's points would mix several
  const of = f => data.runs.map(r => f(r.result));
  const table = [
    ['peak reserved R', of(r => size(r.reservedPeak))],
    ['peak requested Q, the least that is needed', of(r => size(r.maxLoad))],
    ['peak R / peak Q', of(ratio)],
    ['peak allocated A', of(r => size(r.allocatedPeak))],
    ['peak pending P', of(r => size(r.pendingPeak))],
    ['internal (A − Q) / R, where R peaks', at(p => percent((p.allocated - p.requested) / p.reserved))],
    ['external (R − A − P) / R, where R peaks', at(p => percent((p.reserved - p.allocated - p.pending) / p.reserved))],
    ['largest free block, where R peaks', at(p => size(p.largestFree))],
    ['event at which R peaks and A is most', at(p => count(p.event))],
    ['cached at the end: releasable', of(r => size(r.releasable))],
    ['cached at the end: beside live blocks', of(r => size(r.inactiveSplit))],
    ['device calls', of(r => count(r.deviceCalls))],
    ['pages mapped / unmapped', of(r => count(r.pagesMapped) + ' / ' + count(r.pagesUnmapped))],
    ['page maps a step, after warm-up', of(r => r.mapsPerStep === null ? '–' : r.mapsPerStep.toFixed(1))],
    ['waits between streams', of(r => count(r.streamWaits))],
    ['retries', of(r => count(r.retries))],
    ['finished', of(r => r.finished ? 'yes' : `out of memory at event ${count(r.stopped)}`)],
    ['placement hash', of(r => BigInt(r.hash).toString(16))]];
  const numeric = data.runs.map((_, i) => i + 1);
  $('metrics').replaceChildren(row('th', ['', ...data.runs.map(r => r.policy)], numeric, []),
    ...table.map(([name, values]) => row('td', [name, ...values], numeric, [])));
}

// --- moving about ---
let telling = 0;
function drawTime() {
  const now = here();
  $('time').value = time, $('now').textContent = count(time);
  layPages(now);
  if (chosen === null) chooseEmptiest();
  choosePage(chosen[0]);
  curveLegend(), drawCurves(), drawMap();
  drawStrip(now), drawPages(), drawPins(now);
  // The page's address tells what is looked at, for a bookmark or a colleague.
  clearTimeout(telling);
  telling = setTimeout(() => history.replaceState(null, '',
    '#' + new URLSearchParams({policy: run.policy, event: time, page: chosen[0] / data.page})), 300);
}
let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawTime(); });
}
function setTime(t) {
  time = Math.max(0, Math.min(EVENTS - 1, Math.round(t)));
  draw();
}
function showAll() {
  Object.assign(view, {e0: 0, e1: EVENTS, a0: 0, a1: Math.max(1, run.total)});
  draw();
}
function look(e0, e1, a0, a1) {
  const least = Math.min(8, EVENTS);
  if (e1 - e0 < least) e0 = (e0 + e1 - least) / 2, e1 = e0 + least;
  view.e0 = Math.max(0, e0), view.e1 = Math.min(EVENTS, e1);
  if (a1 - a0 >= 512) view.a0 = Math.max(0, a0), view.a1 = Math.min(Math.max(1, run.total), a1);
  draw();
}
function zoom(factor) {
  const half = (view.e1 - view.e0) * factor / 2;
  look(time - half, time + half, view.a0, view.a1);
}
function choosePolicy(r) {
  run = r;
  for (const b of $('policies').children) b.setAttribute('aria-pressed', b.textContent === r.policy);
  chosen = null;
  summary(), showAll();
}
function blockAt(event, position) {
  let best = -1;
  for (let i = 0; i < B.count; ++i) {
    if (B.begin[i] <= event && event < B.end[i] && placed(i) && begins(i) <= position && position < begins(i) + takes(i)) best = i;
  }
  return best;
}
function tip(e, text) {
  const t = $('tip');
  t.hidden = !text;
  if (!text) return;
  t.textContent = text;
  t.style.left = Math.min(e.clientX + 14, innerWidth - t.offsetWidth - 8) + 'px';
  t.style.top = Math.min(e.clientY + 14, innerHeight - t.offsetHeight - 8) + 'px';
}
function describe(i) {
  const [op, scope, file, line] = data.sites[B.site[i]];
  return `${size(B.sizes[B.size[i]])} ${op || ''} at ${size(offsetOf(begins(i)))}\n` + (file ? `${file}:${line}\n` : '') +
    (scope ? scope + '\n' : '') + `block ${count(B.number[i])}, events ${count(B.begin[i])} – ` +
    (B.end[i] >= data.events ? 'end' : count(B.end[i]));
}
function follow(id, positionOf, textOf) {
  const c = $(id);
  let from = null;
  const point = e => { const r = c.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top, r.width]; };
  c.addEventListener('pointerdown', e => { from = point(e); c.setPointerCapture(e.pointerId); });
  c.addEventListener('pointermove', e => {
    const [x, y, w] = point(e);
    tip(e, from ? 'let go to look at this part' : textOf(x, y, w));
    if (from) {  // the frame that is being drawn
      const g = c.getContext('2d');
      if (id === 'map') drawMap(); else drawCurves();
      g.strokeStyle = css.ink, g.setLineDash([4, 3]);
      g.strokeRect(from[0], id === 'map' ? from[1] : 4, x - from[0], id === 'map' ? y - from[1] : +c.dataset.height - 28);
      g.setLineDash([]);
    }
  });
  c.addEventListener('pointerleave', e => tip(e, ''));
  c.addEventListener('pointerup', e => {
    const to = point(e), start = from;
    from = null;
    if (!start) return;
    if (Math.abs(to[0] - start[0]) < 5 && Math.abs(to[1] - start[1]) < 5) {
      if (positionOf) choosePage(positionOf(to[1]));
      setTime(xEvent(to[0], to[2]));
      return;
    }
    const e0 = xEvent(Math.min(to[0], start[0]), to[2]), e1 = xEvent(Math.max(to[0], start[0]), to[2]);
    if (positionOf && Math.abs(to[1] - start[1]) >= 12) {
      look(e0, e1, positionOf(Math.max(to[1], start[1])), positionOf(Math.min(to[1], start[1])));
    } else look(e0, e1, view.a0, view.a1);
  });
  c.addEventListener('dblclick', showAll);
}
const mapPosition = y => {
  const y0 = 8, y1 = +$('map').dataset.height - 24;
  return view.a0 + (y1 - y) / (y1 - y0) * (view.a1 - view.a0);
};
const stripPosition = (x, w) => view.a0 + (x - 8) / (w - 16) * (view.a1 - view.a0);

function start() {
  readColours();
  document.title = 'Memory: ' + data.source;
  $('title').textContent = 'Memory of ' + (data.source || 'a trace');
  $('about').textContent = [data.device, count(data.events) + ' events', count(B.all) + ' allocations' +
    (B.count < B.all ? ', of which ' + count(B.count) + ' are shown one by one' : '')].filter(x => x).join(', ');
  if (!run) return;
  $('time').max = EVENTS - 1;
  for (const r of data.runs) {
    const b = element('button', r.policy);
    b.addEventListener('click', () => choosePolicy(r));
    $('policies').append(b);
  }
  if (data.sites.length < 2) $('colour').value = 'size';  // nobody said who asked
  chooseColours(), metrics();
  const asked = new URLSearchParams(location.hash.slice(1));
  choosePolicy(data.runs.find(r => r.policy === asked.get('policy')) || run);
  setTime(asked.has('event') ? +asked.get('event') || 0 : run.peak.event);
  if (asked.has('page')) chosen = [(+asked.get('page') || 0) * data.page, data.page];
  $('time').addEventListener('input', () => setTime(+$('time').value));
  $('colour').addEventListener('change', () => { chooseColours(); draw(); });
  $('all').addEventListener('click', showAll);
  follow('curves', null, (x, y, w) => 'event ' + count(Math.max(0, xEvent(x, w))));
  follow('map', mapPosition, (x, y, w) => {
    const i = blockAt(xEvent(x, w), mapPosition(y));
    return i >= 0 ? describe(i) : x > LEFT ? 'event ' + count(Math.max(0, xEvent(x, w))) + ', ' + size(offsetOf(mapPosition(y))) : '';
  });
  $('strip').addEventListener('pointermove', e => {
    const i = blockAt(time, stripPosition(e.offsetX, $('strip').clientWidth));
    tip(e, i >= 0 ? describe(i) : '');
  });
  $('strip').addEventListener('pointerleave', e => tip(e, ''));
  $('strip').addEventListener('click', e => { choosePage(stripPosition(e.offsetX, $('strip').clientWidth)); draw(); });
  $('pages').addEventListener('click', e => {
    const i = Math.floor((e.offsetY - 1) / cells.side) * cells.columns + Math.floor((e.offsetX - 1) / cells.side);
    if (i < cells.n) choosePage((cells.start + i * cells.each) * data.page);
    draw();
  });
  $('pages').addEventListener('keydown', e => {
    const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -cells.columns, ArrowDown: cells.columns}[e.key];
    if (!by) return;
    const i = (chosen[0] / data.page - cells.start) / cells.each + by;
    if (i >= 0 && i < cells.n) choosePage((cells.start + i * cells.each) * data.page);
    e.preventDefault(), e.stopPropagation(), draw();
  });
  document.addEventListener('keydown', e => {
    if (e.ctrlKey || e.altKey || e.metaKey || e.target.tagName === 'SELECT') return;
    const step = e.shiftKey ? Math.max(1, EVENTS / 100) : 1;
    if (e.key === 'ArrowLeft') setTime(time - step);
    else if (e.key === 'ArrowRight') setTime(time + step);
    else if (e.key === '+' || e.key === '=') zoom(0.5);
    else if (e.key === '-') zoom(2);
    else if (e.key === '0') showAll();
    else if (e.key === 'p') setTime(run.peak.event);
    else return;
    e.preventDefault();
  });
  addEventListener('resize', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); draw(); });
}
start();
)js";

}  // namespace taper::tools
