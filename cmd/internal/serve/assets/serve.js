// Keeps the page up to date with the state that the server sends. Text goes into the
// page as text: nothing that a process is called can become markup.
(() => {
  const { dress, resolve, functions } = window.detentPage, duration = functions.duration;
  const $ = id => document.getElementById(id);
  const initial = JSON.parse($('initial').textContent);
  const charts = {};
  const plot = (id, option) => {
    const chart = charts[id] ||= echarts.init($(id), null, { renderer: 'svg' });
    chart.setOption(dress(resolve(option)), true);
  };
  const el = (name, attributes, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const rows = (id, list, empty) => {
    const body = $(id).tBodies[0], columns = $(id).tHead.rows[0].cells;
    body.replaceChildren(...list.map(row => el('tr', null, ...row.map((cell, i) => el('td', columns[i].className ? { class: columns[i].className } : null, String(cell))))));
    if (!list.length && empty) body.replaceChildren(el('tr', null, el('td', { colspan: columns.length, class: 'soft' }, empty)));
  };
  const rate = v => v === 0 ? '0' : v < 10 ? v.toFixed(1) : Math.round(v).toLocaleString('en');

  const kept = 300, times = [], moving = new Map();
  let state = null, lastSleeps = '', received = 0;

  const tiles = s => {
    const list = [
      [duration(s.now.least_ns), 'time.Now, at least'], [duration(s.now.typical_ns), 'time.Now, typically'],
      ...s.sleeps.flatMap(w => [[duration(w.p50_ns), w.way + ' too long, p50'], [duration(w.p99_ns), w.way + ' too long, p99']]),
    ];
    $('tiles').replaceChildren(...list.map(([value, name]) => el('div', { class: 'tile' }, el('b', null, value), el('span', null, name))));
  };

  const sleeps = s => {
    const text = JSON.stringify(s.sleeps);
    if (!s.sleeps.length || text === lastSleeps) return;
    lastSleeps = text;
    times.push(new Date(s.time).toLocaleTimeString('en', { hour12: false }));
    for (const w of s.sleeps) {
      if (!moving.has(w.way)) moving.set(w.way, Array(times.length - 1).fill(null));
      moving.get(w.way).push(Math.max(w.last_ns, 1000));
    }
    if (times.length > kept) { times.shift(); moving.forEach(v => v.shift()); }
    plot('moving', {
      grid: { left: 8, right: 36, top: 34, bottom: 8, containLabel: true }, legend: { top: 0 },
      xAxis: { type: 'category', data: times, boundaryGap: false }, yAxis: { type: 'log', axisLabel: { formatter: 'fn:duration' } },
      tooltip: { trigger: 'axis', valueFormatter: 'fn:duration' },
      series: [...moving].map(([name, data]) => ({ type: 'line', name, data: [...data], showSymbol: times.length < 3 })),
    });
    const bounds = [...initial.bounds, null], labels = bounds.map(b => b === null ? 'more' : '≤ ' + duration(b));
    plot('lateness', {
      grid: { left: 8, right: 16, top: 34, bottom: 8, containLabel: true }, legend: { top: 0, right: 8 },
      xAxis: { type: 'category', data: labels, axisLabel: { rotate: 45, hideOverlap: true } }, yAxis: { type: 'value', name: '% of sleeps', nameTextStyle: { align: 'left' } },
      tooltip: { trigger: 'axis' },
      series: s.sleeps.map(w => ({ type: 'bar', name: w.way, data: w.counts.map(n => w.count ? +(100 * n / w.count).toFixed(2) : 0) })),
    });
    rows('sleeps', s.sleeps.map(w => [w.way, w.count, duration(w.p50_ns), duration(w.p99_ns), duration(w.max_ns)]));
  };

  // What has been opened or closed by hand stays so while the finding is there, also
  // when its figures change.
  const touched = new Map();
  const finding = f => {
    const evidence = el('dl');
    for (const e of f.evidence || []) evidence.append(el('dt', null, e.name), el('dd', null, e.value + ' ', e.source ? el('span', { class: 'soft' }, '(' + e.source + ')') : ''));
    const key = f.id + (f.title.match(/\(PID \d+\)/) || [''])[0];
    const serious = f.severity === 'critical' || f.severity === 'warning';
    const more = el('details', touched.get(key) ?? serious ? { open: '' } : null,
      el('summary', null, el('h3', null, el('span', { class: 'tag ' + f.severity }, f.severity), f.confidence === 'certain' ? '' : el('span', { class: 'tag' }, f.confidence), f.title)),
      f.detail ? el('p', null, f.detail) : '', evidence, ...(f.remedy || []).map(step => el('pre', null, step)),
      el('p', { class: 'soft' }, el('code', null, f.id)));
    more.querySelector('summary').addEventListener('click', () => touched.set(key, !more.open));
    return el('section', { class: 'finding ' + f.severity, 'data-id': f.id }, more);
  };

  let shown = {};
  const changed = (name, value) => {
    const text = JSON.stringify(value);
    if (shown[name] === text) return false;
    shown[name] = text;
    return true;
  };

  const slow = s => {
    $('machine').textContent = s.machine;
    $('verdict').textContent = s.verdict;
    $('verdict').className = 'verdict ' + (s.severity === 'warning' || s.severity === 'critical' ? s.severity : 'good');
    document.title = (s.severity === 'critical' ? '✖ ' : s.severity === 'warning' ? '⚠ ' : '') + 'detent';
    if (changed('findings', s.findings)) $('findings').replaceChildren(...(s.findings.length ? s.findings.map(finding) : [el('p', { class: 'soft' }, 'None.')]));
    if (changed('unseen', s.unseen)) $('unseen').replaceChildren(...(s.unseen.length ? s.unseen.map(u => el('li', null, el('b', null, u.check), ': ' + u.why)) : [el('li', { class: 'soft' }, 'Everything was seen.')]));
    if (s.clocks.length && changed('clocks', s.clocks)) plot('clocks', {
      grid: { left: 8, right: 70, top: 34, bottom: 8, containLabel: true }, legend: { top: 0 },
      xAxis: { type: 'log', axisLabel: { formatter: 'fn:duration' } }, yAxis: { type: 'category', inverse: true, data: s.clocks.map(c => c.name) },
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, valueFormatter: 'fn:duration' },
      series: [
        { type: 'bar', name: 'as Go reads it', data: s.clocks.map(c => c.least_ns), label: { show: true, position: 'right', formatter: 'fn:label' } },
        { type: 'bar', name: 'by system call', data: s.clocks.map(c => c.syscall_ns || null) },
      ],
    });
    if (s.offsets && changed('offsets', s.offsets)) {
      const at = new Map(s.offsets.cpus.map((c, i) => [c, i])), cells = [];
      let most = 1000; // what is less than a microsecond looks harmless
      for (const o of s.offsets.cells) {
        const bound = Math.max(o.high_ns, -o.low_ns), text = o.apart ? 'apart' : 'at most ' + duration(bound);
        most = Math.max(most, bound);
        cells.push([at.get(o.to), at.get(o.from), bound, text], [at.get(o.from), at.get(o.to), bound, text]);
      }
      const names = s.offsets.cpus.map(c => 'CPU ' + c);
      $('offsets').style.height = Math.min(180 + 34 * names.length, 900) + 'px';
      if (charts.offsets) charts.offsets.resize();
      plot('offsets', {
        grid: { left: 8, right: 24, top: 12, bottom: 56, containLabel: true },
        xAxis: { type: 'category', data: names }, yAxis: { type: 'category', data: names, inverse: true },
        visualMap: { min: 0, max: most, orient: 'horizontal', left: 'center', bottom: 0, formatter: 'fn:duration', dimension: 2, inRange: { color: ['#e8f1fb', '#7ba7e0', '#2458c5', '#5a1a86', '#c0182b'] } },
        series: [{ type: 'heatmap', data: cells, label: { show: names.length <= 16, formatter: 'fn:cell' } }], tooltip: { formatter: 'fn:cell' },
      });
    }
  };

  const show = s => {
    state = s;
    received = Date.now();
    tiles(s);
    sleeps(s);
    slow(s);
    $('watching').textContent = s.watching || 'Those with findings first, then those that read the clock by system calls, arm timers or are woken most.';
    rows('processes', s.processes.map(p => [p.name, p.pid, rate(p.clock_calls_per_s), rate(p.timers_per_s), rate(p.wakeups_per_s), p.late_p99_ns ? duration(p.late_p99_ns) : '', p.late_by, (p.findings || []).join(', ')]), 'None.');
  };
  const link = up => {
    $('link').textContent = up ? 'live' : 'connection lost';
    $('link').className = 'tag ' + (up ? 'up' : 'down');
  };
  const age = () => {
    if (state) $('age').textContent = 'As of ' + new Date(state.time).toLocaleTimeString('en', { hour12: false }) + '.';
  };

  show(initial.state);
  const events = new EventSource('/api/events');
  events.addEventListener('open', () => link(true));
  events.addEventListener('error', () => link(false));
  events.addEventListener('state', e => { link(true); show(JSON.parse(e.data)); age(); });
  addEventListener('resize', () => Object.values(charts).forEach(c => c.resize()));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { shown = {}; lastSleeps = ''; if (state) show(state); });
})();
