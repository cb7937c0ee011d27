#include "planner/page/page_style.hpp"

namespace planner {

namespace {

constexpr std::string_view style_head =
    R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root{--idle:#c8cdd4;--wait:#99a1ac;--step:#6a3d9a;--rest:#8a6d4b;--bad:#b3261e;--good:#0a6b4f}
@media(prefers-color-scheme:dark){:root{--idle:#454b54;--wait:#707883;--step:#a98bd6;--rest:#b0926d;
--bad:#ff8a80;--good:#5fd0a8}}
.compute,.weights,.forward{--c:#0072b2}.recompute,.gradient{--c:#56b4e9}
.tp,.backward,.activations{--c:#e69f00}.cp{--c:#f0c400}.ep{--c:#d55e00}
.pp,.transfer{--c:#cc79a7}.dp,.gradients,.reduction{--c:#009e73}
.bubble{--c:var(--idle)}.imbalance,.buffers{--c:var(--wait)}
.optimizer{--c:var(--step)}.other{--c:var(--rest)}.span{--c:var(--wait)}.point{--c:var(--ink)}
i{display:inline-block;width:.8em;height:.8em;margin-right:.5em;border-radius:2px;background:var(--c);
-webkit-print-color-adjust:exact;print-color-adjust:exact}
svg{-webkit-print-color-adjust:exact;print-color-adjust:exact}
svg rect{fill:var(--c)}.slices{stroke:var(--c);fill:none}.odd{stroke-opacity:.72}
svg .gap{fill:var(--line)}
.plot{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 8px}
.ranks,.area,.ticks{position:relative}.ranks{min-width:2.2em;font-size:11px;color:var(--dim)}
.ranks span{position:absolute;right:0;line-height:1.4}
.area{background:var(--stripe);touch-action:pan-y;cursor:grab}.area:active{cursor:grabbing}
.area:focus-visible,button:focus-visible{outline:2px solid #0072b2;outline-offset:2px}
.area svg{display:block;width:100%;height:100%}
.area.still{cursor:auto}h3{font-size:13px;font-weight:normal;margin:12px 0 3px}
.names{position:absolute;inset:0;overflow:hidden;pointer-events:none}
.names span{position:absolute;padding-left:2px;font-size:10px;line-height:1.5;color:#fff;
text-shadow:0 0 2px #000,0 0 1px #000}
.ticks{grid-column:2;height:20px;overflow:hidden;font-size:11px;color:var(--dim)}
.ticks span{position:absolute;white-space:nowrap;padding-left:3px;border-left:1px solid var(--dim)}
.tip{position:absolute;z-index:1;max-width:100%;padding:3px 8px;border-radius:6px;font-size:13px;
background:var(--ink);color:var(--paper);pointer-events:none}
.keys{display:flex;gap:6px;align-items:center;margin:0 0 8px;color:var(--dim);font-size:13px}
.keys[hidden]{display:none}
button{font:inherit;min-width:32px;min-height:28px;padding:0 8px;color:var(--ink);
background:var(--stripe);border:1px solid var(--line);border-radius:6px;cursor:pointer}
.bar{display:block;width:100%;height:16px}.bar.large,.large .bar{height:34px}
.beside{margin:3px 0 8px}.rows .beside{margin:0 0 8px}.rows .beside .bar{height:12px}
.bar rect{stroke:var(--paper);stroke-width:1;vector-effect:non-scaling-stroke}
.hatched{fill:none;stroke:var(--c);stroke-width:10;stroke-dasharray:3 2}
.limit{stroke:var(--ink);stroke-width:2;vector-effect:non-scaling-stroke;fill:none}
td .bar{width:170px}td:last-child:not(.r){min-width:11em}
.rows{display:grid;grid-template-columns:max-content minmax(0,1fr) max-content;gap:3px 10px;
align-items:center;font-size:13px;font-variant-numeric:tabular-nums}
.rows span:nth-child(3n+1),.rows span:nth-child(3n){color:var(--dim)}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin:10px 0 0;color:var(--dim);font-size:13px}
.chart,.heat{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:0 8px;margin:0 0 14px;
font-size:12px;color:var(--dim);font-variant-numeric:tabular-nums}
.chart figcaption,.heat figcaption{grid-column:1/3;margin-bottom:6px}
.chart svg{display:block;width:100%;height:240px;overflow:visible}
.chart .up{position:relative;min-width:5.2em}
.chart .up span{position:absolute;right:0;transform:translateY(50%);white-space:nowrap}
.chart .across{grid-column:2;position:relative;height:22px;margin-top:4px}
.chart .across span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.chart .title,.heat .title{grid-column:2;text-align:center}
.grid{stroke:var(--line);stroke-width:1;fill:none;vector-effect:non-scaling-stroke}
.line{stroke:var(--c);stroke-width:2;fill:none;vector-effect:non-scaling-stroke}
.dot{stroke:var(--c);stroke-width:8;stroke-linecap:round;fill:none;vector-effect:non-scaling-stroke}
.chart+.legend{margin:0 0 16px}.dot.marked{stroke-width:15}
.heat .left{display:grid;grid-auto-rows:1fr;align-items:center;text-align:right}
.heat .cells{position:relative;border:1px solid var(--line)}
.heat svg{position:absolute;inset:0;width:100%;height:100%}
.heat .words{position:absolute;inset:0;grid-auto-rows:1fr;align-items:center;color:var(--ink);
pointer-events:none}
.heat .words,.heat .below{display:grid;grid-template-columns:repeat(var(--across),minmax(0,1fr));
text-align:center}.heat .below{grid-column:2;margin-top:4px}
.heat span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:2px 24px;margin:0}
.facts div{display:flex;justify-content:space-between;gap:12px;border-bottom:1px solid var(--line)}
.facts dt{color:var(--dim)}.facts dd{margin:0;text-align:right;max-width:75%;overflow-wrap:break-word;
font-variant-numeric:tabular-nums}
.facts+ul,ul+.facts{margin-top:10px}.facts+.note{margin-top:8px}.facts+.chart{margin-top:14px}
.tiles{grid-template-columns:repeat(auto-fit,minmax(155px,1fr))}.tile b{font-size:22px}
section p{margin:0 0 10px}section ul{margin:0;padding-left:20px}section li{overflow-wrap:anywhere}
details details,section details{margin-top:10px}section details summary{font-size:14px}
.told{display:inline-block;min-width:13em}
.note{color:var(--dim);font-size:13px}.bad{color:var(--bad)}.good{color:var(--good)}
h1{overflow-wrap:anywhere}.verdict{font-size:17px;margin:0 0 6px}.verdict b{font-weight:650}
a{color:inherit}summary:focus-visible,a:focus-visible{outline:2px solid #0072b2;outline-offset:2px}
@media(max-width:640px){main{padding:16px 10px 40px}section{padding:14px 12px}h1{font-size:21px}
.tiles{grid-template-columns:1fr 1fr;gap:8px}.tile{padding:10px 12px}.tile b{font-size:20px}}
@media print{:root{--back:#fff;--paper:#fff;--ink:#000;--dim:#444;--line:#ccc;--stripe:#fff}
main{max-width:none;padding:0}section,.tile{break-inside:avoid;border-color:#ccc}
.wide{overflow:visible}.keys{display:none}table{font-size:10px}th,td{padding:2px 5px}}
</style>
)";

}  // namespace

std::string_view report_head() { return style_head; }

}  // namespace planner
