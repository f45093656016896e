// Draws the charts of the page, each from the option object beside it, in the
// colours of the style sheet; again when those or the width change.
(() => {
  const functions = {
    // A duration in nanoseconds.
    duration: v => {
      if (v === null || v === undefined || v === '' || Number.isNaN(+v)) return '';
      const a = Math.abs(v), digits = x => x.toFixed(Math.abs(x) < 10 && x % 1 ? 1 : 0);
      if (a < 1e3) return digits(+v) + ' ns';
      if (a < 1e6) return digits(v / 1e3) + ' us';
      if (a < 1e9) return digits(v / 1e6) + ' ms';
      return digits(v / 1e9) + ' s';
    },
    // One that is the power of ten of a value.
    decade: v => functions.duration(10 ** v),
    number: v => v === null || v === undefined || Number.isNaN(+v) ? '' : (+v).toLocaleString('en', { maximumSignificantDigits: 3, notation: Math.abs(v) >= 1e5 ? 'compact' : 'standard' }),
    numberLabel: p => functions.number(p.value),
    label: p => functions.duration(Array.isArray(p.value) ? p.value[1] : p.value),
    // A cell of a matrix: [column, row, value, what it says].
    cell: p => p.value[3],
  };
  const resolve = o => {
    if (typeof o === 'string') return o.startsWith('fn:') ? functions[o.slice(3)] : o;
    if (Array.isArray(o)) return o.map(resolve);
    if (o && typeof o === 'object') return Object.fromEntries(Object.entries(o).map(([k, v]) => [k, resolve(v)]));
    return o;
  };
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dress = option => {
    const ink = colour('--ink'), soft = colour('--soft'), line = colour('--line');
    const axis = a => Array.isArray(a) ? a.map(axis) : a && {
      ...a, nameTextStyle: { color: soft, ...a.nameTextStyle }, axisLabel: { color: soft, ...a.axisLabel },
      axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line }, ...a.splitLine },
    };
    return {
      animation: false, backgroundColor: 'transparent', textStyle: { color: ink, fontFamily: getComputedStyle(document.body).fontFamily },
      color: [colour('--accent'), colour('--warning'), colour('--good'), colour('--critical'), '#8a63d2', '#1b9aaa', soft],
      ...option,
      legend: option.legend && { textStyle: { color: ink }, ...option.legend },
      visualMap: option.visualMap && { textStyle: { color: soft }, ...option.visualMap },
      xAxis: axis(option.xAxis), yAxis: axis(option.yAxis),
      series: (option.series || []).map(s => s.type === 'bar' && s.label ? { ...s, label: { color: ink, textBorderWidth: 0, ...s.label } } : s),
    };
  };
  const charts = new Map();
  const draw = () => {
    for (const script of document.querySelectorAll('script.option')) {
      const place = document.getElementById(script.dataset.for);
      if (!place) continue;
      let chart = charts.get(place);
      if (!chart) charts.set(place, chart = echarts.init(place, null, { renderer: 'svg' }));
      chart.setOption(dress(resolve(JSON.parse(script.textContent))), true);
      chart.resize();
    }
  };
  const resize = () => charts.forEach(c => c.resize());
  window.detentPage = { resolve, dress, charts, functions, draw };
  draw();
  addEventListener('resize', resize);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  matchMedia('print').addEventListener('change', draw);
  addEventListener('beforeprint', draw);
  addEventListener('afterprint', draw);
})();
