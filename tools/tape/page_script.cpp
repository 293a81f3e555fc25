// The script of the tape's page: draws the curve, the rows that are in sight, and the tables.
#include "taper/tools/tape/page_parts.h"

namespace taper::tools {

const char* const kTapeScript = R"js('use strict';
const $ = id => document.getElementById(id);
const tape = JSON.parse($('tape').textContent), more = JSON.parse($('more').textContent);
const E = tape.entries, N = E.length, held = more.held, ROW = 22;
const total = h => h[2] + h[3];
let peak = 0;
for (let i = 0; i < held.length; ++i) if (total(held[i]) > total(held[peak])) peak = i;

// --- words ---
function size(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let u = 0;
  for (; n >= 1024 && u < 5; ++u) n /= 1024;
  return (u === 0 || n >= 1000 ? Math.round(n) : n >= 100 ? n.toFixed(1) : n.toFixed(2)) + ' ' + units[u];
}
const count = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
function flops(n) {
  if (n === null) return 'not known';
  const units = ['', ' k', ' M', ' G', ' T', ' P'];
  let u = 0;
  for (; n >= 1000 && u < 5; ++u) n /= 1000;
  return (u === 0 ? count(n) : n.toPrecision(3)) + units[u] + ' FLOP';
}
const spec = t => t.dtype + ' (' + t.sizes.join(', ') + ')';
const place = e => e.line ? e.file.slice(e.file.lastIndexOf('/') + 1) + ':' + e.line : '';
function element(tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}
function legend(into, entries) {
  into.replaceChildren(...entries.map(([colour, name, value]) => {
    const e = element('span', undefined, 'legend');
    if (colour) e.append(Object.assign(element('i'), {style: 'background:' + colour}));
    e.append(element('span', name));
    if (value !== undefined) e.append(element('b', value));
    return e;
  }));
}

// --- entries ---
const byIndex = new Map(E.map((e, i) => [e.index, i])), leafOf = new Map(tape.leaves.map(l => [l.index, l]));
function nodeText(edge) {
  if (!edge) return 'no gradient wanted';
  const i = byIndex.get(edge[0]), leaf = leafOf.get(edge[0]);
  if (i !== undefined) return `#${edge[0]} ${E[i].op}` + (E[i].outputs.length > 1 ? `, output ${edge[1]}` : '');
  return leaf ? (leaf.name || 'a leaf') + ', ' + spec(leaf) : '#' + edge[0];
}
const users = E.map(() => []);
E.forEach(e => e.inputs.forEach(x => x && byIndex.has(x[0]) && users[byIndex.get(x[0])].push(e.index)));
// Bytes by kind of what the entry saves first, and of what an earlier one saves too.
const KINDS = ['activation', 'parameter', 'data'], COLOURS = ['var(--activation)', 'var(--parameter)', 'var(--datum)', 'var(--again)'];
const taken = new Set();
const parts = E.map(e => {
  const sums = [0, 0, 0, 0], seen = new Set();
  for (const s of e.saved) {
    if (seen.has(s.storage)) continue;
    seen.add(s.storage);
    const of = tape.storages[s.storage];
    sums[taken.has(s.storage) ? 3 : KINDS.indexOf(of.kind)] += of.bytes;
  }
  for (const s of seen) taken.add(s);
  return sums;
});
const most = E.reduce((n, e) => Math.max(n, e.saved_bytes), 1);
function describe(i, long) {
  const e = E[i], lines = [`#${e.index} ${e.op}`];
  if (e.line) lines.push(`${place(e)} in ${e.function}`);
  if (e.scope) lines.push(e.scope);
  if (e.stream) lines.push('stream ' + e.stream);
  e.outputs.forEach((t, k) => lines.push(`output ${e.outputs.length > 1 ? k + ' ' : ''}${spec(t)} on ${t.device}`));
  e.inputs.forEach((x, k) => lines.push(`input ${k} from ${nodeText(x)}`));
  if (e.consumed) lines.push('backward ran it and gave back what it had saved');
  else lines.push(e.saved.length ? `saves ${size(e.saved_bytes)}, of it new ${size(e.first_bytes)}` : 'saves nothing');
  e.saved.forEach((s, k) => {
    const of = tape.storages[s.storage];
    lines.push(`  ${spec(s)}, ${size(of.bytes)}\n    ${more.owners[i][k]}`);
  });
  lines.push('to compute it again: ' + flops(more.flops[i]));
  if (long && users[i].length) lines.push('used by ' + users[i].slice(0, 12).map(u => `#${u} ${E[byIndex.get(u)].op}`).join(', ') +
    (users[i].length > 12 ? ` and ${users[i].length - 12} more` : ''));
  return lines.join('\n');
}
function meter(sums, scale) {
  const m = element('span', undefined, 'meter');
  sums.forEach((n, k) => {
    if (n) m.append(Object.assign(element('i'), {style: `width:${100 * n / scale}%;background:${COLOURS[k]}`}));
  });
  return m;
}

// --- rows: only those in sight are there ---
let visible = E.map((_, i) => i), chosen = -1;
function rowOf(i, at) {
  const e = E[i], r = element('div', undefined, 'row');
  r.style.top = at * ROW + 'px';
  const op = element('span');
  op.append(element('span', '#' + e.index + ' ', 'dim'), element('b', e.op));
  const saves = element('span', undefined, 'saves');
  saves.append(meter(parts[i], most));
  if (held.length && held[peak][0] === i) {
    r.classList.add('peak');
    saves.append(element('em', 'peak'));
  }
  r.append(op, element('span', place(e), 'wide'), element('span', e.scope),
    element('span', e.outputs.length ? spec(e.outputs[0]) + (e.outputs.length > 1 ? ` +${e.outputs.length - 1}` : '') : '', 'wide'), saves,
    element('span', e.consumed ? 'given back' : e.saved_bytes ? size(e.saved_bytes) : '', 'n'));
  if (i === chosen) r.classList.add('chosen');
  r.dataset.i = i;
  return r;
}
function drawRows() {
  const top = $('rows').scrollTop, height = $('rows').clientHeight;
  const from = Math.max(0, Math.floor(top / ROW) - 5), to = Math.min(visible.length, Math.ceil((top + height) / ROW) + 5);
  $('sizer').style.height = visible.length * ROW + 'px';
  $('sizer').replaceChildren(...visible.slice(from, to).map((i, k) => rowOf(i, from + k)));
}
function choose(i, scroll) {
  chosen = i;
  $('details').textContent = i >= 0 ? describe(i, true) : 'Hover over an entry, or choose one.';
  const at = visible.indexOf(i);
  if (scroll && at >= 0) {
    const y = at * ROW, box = $('rows');
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 2 * ROW) box.scrollTop = y - box.clientHeight / 2;
  }
  drawRows(), drawCurve();
}
const text = E.map(e => [e.scope, e.op, place(e), '#' + e.index].join(' ').toLowerCase());
function filter(words) {
  $('filter').value = words;
  const all = words.toLowerCase().split(/\s+/).filter(w => w);
  show(E.map((_, i) => i).filter(i => all.every(w => text[i].includes(w))));
}
function show(list) {
  visible = list;
  $('shown').textContent = visible.length === N ? '' : `${count(visible.length)} of ${count(N)}`;
  $('rows').scrollTop = 0;
  drawRows(), drawCurve();
}

// --- the curve ---
const LEFT = 70, RIGHT = 12, TOP = 18, BOTTOM = 22;
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
function nice(n) {
  const unit = 1024 ** Math.floor(Math.log(Math.max(1, n)) / Math.log(1024)), x = n / unit;
  return unit * [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024].find(s => s >= x / 5);
}
const curveX = (i, w) => LEFT + (w - LEFT - RIGHT) * (i + 0.5) / Math.max(1, held.length);
function drawCurve() {
  const c = $('curve'), scale = window.devicePixelRatio || 1, w = c.clientWidth, h = 190;
  c.style.height = h + 'px', c.width = Math.round(w * scale), c.height = Math.round(h * scale);
  const g = c.getContext('2d');
  g.scale(scale, scale);
  g.font = '12px system-ui, sans-serif';
  if (!held.length) return;
  const high = Math.max(1, total(held[peak])), step = nice(high), y = n => h - BOTTOM - (h - TOP - BOTTOM) * n / high;
  g.strokeStyle = colour('line'), g.fillStyle = colour('dim'), g.textAlign = 'right';
  for (let n = 0; n <= high; n += step) {
    g.beginPath(), g.moveTo(LEFT, y(n) + 0.5), g.lineTo(w - RIGHT, y(n) + 0.5), g.stroke();
    g.fillText(n ? size(n).replace(/\.0+ /, ' ') : '0', LEFT - 8, y(n) + 4);
  }
  const area = (name, top, low) => {
    g.beginPath();
    held.forEach((m, i) => g.lineTo(curveX(i, w), y(top(m))));
    for (let i = held.length - 1; i >= 0; --i) g.lineTo(curveX(i, w), y(low(held[i])));
    g.fillStyle = colour(name), g.globalAlpha = 0.75, g.fill(), g.globalAlpha = 1;
  };
  area('activation', m => m[2], () => 0);
  area('gradient', total, m => m[2]);
  const middle = (curveX(N - 1, w) + curveX(N, w)) / 2;
  g.strokeStyle = colour('dim'), g.setLineDash([3, 3]);
  g.beginPath(), g.moveTo(middle, TOP - 8), g.lineTo(middle, h - BOTTOM), g.stroke(), g.setLineDash([]);
  g.fillStyle = colour('dim'), g.textAlign = 'center';
  g.fillText('forward', (LEFT + middle) / 2, h - 6), g.fillText('backward', (middle + w - RIGHT) / 2, h - 6);
  const px = curveX(peak, w);
  g.strokeStyle = colour('mark'), g.fillStyle = colour('mark');
  g.beginPath(), g.arc(px, y(high), 4, 0, 7), g.fill();
  g.textAlign = px > w / 2 ? 'right' : 'left';
  g.fillText('peak ' + size(high), px + (px > w / 2 ? -8 : 8), TOP - 6);
  if (chosen < 0) return;
  g.strokeStyle = colour('ink');
  for (const i of [chosen, 2 * N - 1 - chosen]) g.beginPath(), g.moveTo(curveX(i, w), TOP), g.lineTo(curveX(i, w), h - BOTTOM), g.stroke();
}
function momentAt(e) {
  const r = $('curve').getBoundingClientRect();
  return Math.max(0, Math.min(held.length - 1, Math.floor((e.clientX - r.left - LEFT) / (r.width - LEFT - RIGHT) * held.length)));
}
function tip(e, words) {
  const t = $('tip');
  t.hidden = !words;
  if (!words) return;
  t.textContent = words;
  t.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - t.offsetWidth - 8)) + 'px';
  t.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - t.offsetHeight - 8)) + 'px';
}

// --- groups ---
function showGroups(by) {
  for (const b of $('by').children) b.setAttribute('aria-pressed', b.textContent === by);
  const groups = more[by], all = Math.max(1, ...groups.map(g => g[2] + g[3] + g[4]));
  const head = element('tr');
  for (const [t, c] of [[by], ['entries', 'n'], ['bytes', 'n'], ['activations', 'n'], ['parameters', 'n'], ['data', 'n'], ['']])
    head.append(element('th', t, c));
  const top = element('thead'), body = element('tbody');
  top.append(head);
  for (const g of groups.slice(0, 2000)) {
    const r = element('tr'), name = element('td', undefined, 'name'), bar = element('td', undefined, 'share');
    const depth = by === 'scope' && g[0] ? g[0].split('.').length : 0;
    name.style.paddingLeft = 14 * depth + 'px';
    name.textContent = by === 'scope' ? (g[0] ? g[0].slice(g[0].lastIndexOf('.') + 1) : 'all') : g[0];
    name.title = g[0];
    bar.append(meter([g[2], g[3], g[4], 0], all));
    r.append(name, element('td', count(g[1]), 'n'), element('td', size(g[2] + g[3] + g[4]), 'n'),
      ...[2, 3, 4].map(k => element('td', g[k] ? size(g[k]) : '', 'n')), bar);
    r.addEventListener('click', () => {
      $('filter').value = g[0];
      show(E.map((_, i) => i).filter(i => by === 'op' ? E[i].op === g[0] : by === 'line' ? (place(E[i]) || 'an unknown line') === g[0] :
        !g[0] || E[i].scope === g[0] || E[i].scope.startsWith(g[0] + '.')));
      $('rows').scrollIntoView({block: 'nearest'});
    });
    body.append(r);
  }
  if (groups.length > 2000) body.append(element('tr')), body.lastChild.append(element('td', `and ${count(groups.length - 2000)} more`, 'dim'));
  $('groups').replaceChildren(top, body);
}

function start() {
  document.title = 'Tape: ' + more.name;
  $('title').textContent = 'Tape of ' + more.name;
  $('about').textContent = `${count(N)} entries, ${count(tape.leaves.length)} leaves`;
  const sums = KINDS.map(k => tape.storages.reduce((n, s) => n + (s.kind === k ? s.bytes : 0), 0));
  legend($('summary'), [['', 'saves', size(sums[0] + sums[1] + sums[2])], [COLOURS[0], 'activations', size(sums[0])],
    [COLOURS[1], 'parameters', size(sums[1])], [COLOURS[2], 'data', size(sums[2])]]);
  legend($('rowLegend'), [[COLOURS[0], 'activations'], [COLOURS[1], 'parameters'], [COLOURS[2], 'data'], [COLOURS[3], 'saved before']]);
  legend($('curveLegend'), [['var(--activation)', 'saved, without parameters'], ['var(--gradient)', 'gradients, at most']]);
  for (const by of ['scope', 'op', 'line']) {
    const b = element('button', by);
    b.addEventListener('click', () => showGroups(by));
    $('by').append(b);
  }
  showGroups('scope');
  const asked = new URLSearchParams(location.hash.slice(1));
  filter(asked.get('show') || '');
  choose(asked.has('entry') ? byIndex.get(+asked.get('entry')) ?? -1 : held.length ? held[peak][0] : -1, true);
  $('filter').addEventListener('input', () => filter($('filter').value));
  $('rows').addEventListener('scroll', drawRows);
  $('rows').addEventListener('pointermove', e => {
    const r = e.target.closest('.row[data-i]');
    tip(e, r ? describe(+r.dataset.i) : '');
  });
  $('rows').addEventListener('pointerleave', e => tip(e, ''));
  $('rows').addEventListener('click', e => {
    const r = e.target.closest('.row[data-i]');
    if (r) choose(+r.dataset.i);
  });
  $('curve').addEventListener('pointermove', e => {
    if (!held.length) return;
    const m = held[momentAt(e)];
    tip(e, `${m[1] ? 'backward' : 'forward'} of #${E[m[0]].index} ${E[m[0]].op}\n${place(E[m[0]])}  ${E[m[0]].scope}\n` +
      `held ${size(total(m))}: saved ${size(m[2])}, gradients at most ${size(m[3])}`);
  });
  $('curve').addEventListener('pointerleave', e => tip(e, ''));
  $('curve').addEventListener('click', e => held.length && choose(held[momentAt(e)][0], true));
  const toPeak = () => { if (held.length) { if (!visible.includes(held[peak][0])) filter(''); choose(held[peak][0], true); } };
  $('toPeak').addEventListener('click', toPeak);
  document.addEventListener('keydown', e => {
    if (e.key === 'Escape') filter('');
    if (e.ctrlKey || e.altKey || e.metaKey || e.target.tagName === 'INPUT') return;
    const at = visible.indexOf(chosen);
    if (e.key === 'ArrowDown' && at + 1 < visible.length) choose(visible[at + 1], true);
    else if (e.key === 'ArrowUp' && at > 0) choose(visible[at - 1], true);
    else if (e.key === 'p') toPeak();
    else if (e.key === '/') $('filter').focus();
    else return;
    e.preventDefault();
  });
  addEventListener('resize', () => { drawRows(), drawCurve(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawCurve);
}
start();
)js";

}  // namespace taper::tools
