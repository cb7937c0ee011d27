#include "planner/page/timeline_script.hpp"

namespace planner {

namespace {

constexpr std::string_view moving_code = R"((function () {
'use strict';
var box = document.querySelector('.timeline'), area = box.querySelector('.area'),
    svg = area.querySelector('svg'), tip = area.querySelector('.tip'),
    names = area.querySelector('.names'), ticks = box.querySelector('.ticks'),
    end = +box.dataset.end, rows = +box.dataset.rows, full = 1e6, from = 0, span = full,
    labels = box.dataset.labels && box.dataset.labels.split('|'), drag = null;
var slices = Array.from({length: rows}, function () { return []; });
svg.querySelectorAll('.slices').forEach(function (path) {
  var at = 0, list = path.dataset.names.split('|'), line = /m(-?\d+) 0h(\d+)/g, found, i = 0;
  while ((found = line.exec(path.getAttribute('d')))) {
    at += +found[1];
    slices[+path.dataset.row].push({from: at, to: at + +found[2], name: list[i++],
      what: path.dataset.what, strip: path.classList.contains('transfer')});
    at += +found[2];
  }
});
function time(units, least) {
  var s = units / full * end, scale = s > 1 - 1e-9 || s === 0 ? [1, ' s'] :
      s > 1e-3 - 1e-12 ? [1e3, ' ms'] : [1e6, ' µs'],
      digits = Math.ceil(-Math.log10(least / full * end * scale[0]) - 1e-9);
  return +(s * scale[0]).toFixed(Math.max(0, Math.min(9, digits))) + scale[1];
}
function told(slice, row) {
  var parts = /^(\d+)[A-Z_]+(\d+)$/.exec(slice.name), length = slice.to - slice.from;
  return (parts ? slice.what + ' ' + parts[2] + ' of stage ' + parts[1] : slice.name) +
      (labels ? ', ' + labels[row] : parts && +parts[1] === row ? '' : ', rank ' + row) + ': ' +
      time(slice.from, length / 100) + ' to ' + time(slice.to, length / 100) + ', ' +
      time(length, length / 1000);
}
function label(parent, left, top, text) {
  var span = document.createElement('span');
  span.textContent = text;
  span.style.left = left + '%';
  if (top !== null) span.style.top = top + '%';
  parent.appendChild(span);
}
function drawTicks() {
  var least = span / full * end * 90 / Math.max(90, area.clientWidth),
      step = Math.pow(10, Math.floor(Math.log10(least))), at;
  while (step < least) step *= step * 2 < least ? 5 : 2;
  ticks.textContent = '';
  for (at = Math.ceil(from / full * end / step) * step; at / end * full <= from + span; at += step)
    label(ticks, (at / end * full - from) / span * 100, null,
          time(at / end * full, step / end * full));
}
function drawNames() {
  var pixel = span / Math.max(1, area.clientWidth), wide = [], row, i, slice, parts;
  names.textContent = '';
  if (area.clientHeight / rows < 14) return;
  for (row = 0; row < rows; ++row)
    for (i = 0; i < slices[row].length; ++i) {
      slice = slices[row][i];
      if (!slice.strip && slice.to > from && slice.from < from + span &&
          slice.to - slice.from > (labels ? 6 * slice.name.length : 22) * pixel) wide.push([row, slice]);
    }
  if (wide.length > 1500) return;
  wide.forEach(function (one) {
    parts = /^(\d+)[A-Z_]+(\d+)$/.exec(one[1].name);
    if (parts || labels) label(names, (Math.max(from, one[1].from) - from) / span * 100,
                               100 * one[0] / rows, parts ? parts[2] : one[1].name);
  });
}
function draw() {
  svg.setAttribute('viewBox', from + ' 0 ' + span + ' ' + 20 * rows);
  drawTicks();
  drawNames();
}
function show(start, length) {
  span = Math.min(full, Math.max(20, length));
  from = Math.min(full - span, Math.max(0, start));
  tip.hidden = true;
  draw();
}
function zoom(factor, at) {
  var length = Math.min(full, Math.max(20, span * factor));
  show(from + at * (span - length), length);
}
function key(name) {
  if (name === '+' || name === '=') zoom(1 / 1.5, .5);
  else if (name === '-' || name === '_') zoom(1.5, .5);
  else if (name === 'ArrowLeft') show(from - span / 8, span);
  else if (name === 'ArrowRight') show(from + span / 8, span);
  else if (name === '0' || name === 'Home') show(0, full);
  else return false;
  return true;
}
function hover(event) {
  var place = area.getBoundingClientRect(), x = event.clientX - place.left,
      y = (event.clientY - place.top) / place.height * rows,
      row = Math.min(rows - 1, Math.max(0, Math.floor(y))), strip = y - row > .65,
      at = from + x / place.width * span, near = 3 * span / place.width;
  var found = slices[row].filter(function (slice) {
    return slice.strip === strip && slice.from - near <= at && at <= slice.to + near;
  }).sort(function (a, b) { return Math.abs(a.from + a.to - 2 * at) - (a.to - a.from) -
      Math.abs(b.from + b.to - 2 * at) + (b.to - b.from); })[0];
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = told(found, row);
  tip.style.left = Math.max(0, Math.min(x + 12, place.width - tip.offsetWidth)) + 'px';
  tip.style.top = (event.clientY - place.top + 18) + 'px';
}
area.addEventListener('keydown', function (event) {
  if (!event.ctrlKey && !event.metaKey && !event.altKey && key(event.key)) event.preventDefault();
});
area.addEventListener('wheel', function (event) {
  if (!event.ctrlKey && document.activeElement !== area) return;
  var place = area.getBoundingClientRect();
  event.preventDefault();
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
    show(from + event.deltaX / place.width * span, span);
  else zoom(Math.pow(1.002, event.deltaY), (event.clientX - place.left) / place.width);
}, {passive: false});
area.addEventListener('pointerdown', function (event) {
  drag = {x: event.clientX, from: from};
  area.setPointerCapture(event.pointerId);
});
area.addEventListener('pointermove', function (event) {
  if (drag && Math.abs(event.clientX - drag.x) > 2)
    show(drag.from - (event.clientX - drag.x) / area.clientWidth * span, span);
  else hover(event);
});
['pointerup', 'pointercancel'].forEach(function (end) {
  area.addEventListener(end, function () { drag = null; });
});
area.addEventListener('pointerleave', function () { tip.hidden = true; });
box.querySelectorAll('button').forEach(function (button) {
  button.addEventListener('click', function () { key(button.dataset.key); });
});
window.addEventListener('resize', function () { show(from, span); });
box.querySelector('.keys').hidden = false;
draw();
})();
)";

}  // namespace

std::string_view timeline_script() { return moving_code; }

}  // namespace planner
