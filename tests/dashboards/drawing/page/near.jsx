// Panels whose own plugins are not published: drawn from the same prepared fields, as near as the packages allow.

import { FieldType, formattedValueToString, getFieldDisplayName, getFieldSeriesColor } from '@grafana/data';
import { UPlotChart, UPlotConfigBuilder, VizLegend } from '@grafana/ui';
import { useLayoutEffect, useRef } from 'react';

const LEFT = 76;
const BELOW = 24;

function textOf(field, value) {
  return formattedValueToString(field.display(value));
}

// Steps that are a power of ten times 1, 2 or 5, some five of them.
function ticks(from, to) {
  const least = (to - from) / 5;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step);
}

// Rows of cells: those of a histogram's buckets, or series counted in twenty rows of equal height.
function cellsOf(panel, frames) {
  const numbers = frames.flatMap((frame) =>
    frame.fields.filter((field) => field.type === FieldType.number).map((field) => ({ frame, field })),
  );
  const { field } = numbers[0];
  if (!panel.options.calculate) {
    const { frame } = numbers[0];
    const rows = numbers.map((each) => ({ name: getFieldDisplayName(each.field, frame), counts: each.field.values }));
    return { times: frame.fields[0].values, rows, unit: field };
  }
  const most = Math.max(...numbers.flatMap((each) => each.field.values.filter(Number.isFinite)));
  const step = ticks(0, most || 1)[1] / 4;
  const times = [...new Set(numbers.flatMap(({ frame }) => frame.fields[0].values))].sort((a, b) => a - b);
  const places = new Map(times.map((time, index) => [time, index]));
  const number = Math.floor((most || 1) / step) + 1;
  const rows = Array.from({ length: number }, (_, row) => ({ from: row * step, counts: times.map(() => 0) }));
  for (const { frame, field: each } of numbers) {
    each.values.forEach((value, index) => {
      if (Number.isFinite(value)) {
        rows[Math.floor(value / step)].counts[places.get(frame.fields[0].values[index])] += 1;
      }
    });
  }
  return { times, rows, step, unit: field };
}

export function Heat({ panel, frames, theme, width, height, range }) {
  const canvas = useRef(null);
  useLayoutEffect(() => {
    const { times, rows, step, unit } = cellsOf(panel, frames);
    const ctx = canvas.current.getContext('2d');
    const [wide, high] = [width - LEFT, height - BELOW];
    const [begin, end] = [range.from.valueOf(), range.to.valueOf()];
    const cellWidth = times.length > 1 ? ((times[1] - times[0]) / (end - begin)) * wide : 4;
    const cellHeight = high / rows.length;
    const most = Math.max(...rows.flatMap((row) => row.counts));
    ctx.clearRect(0, 0, width, height);
    ctx.font = `12px ${theme.typography.fontFamily}`;
    rows.forEach((row, index) => {
      row.counts.forEach((count, place) => {
        if (count > 1e-9) {
          const x = LEFT + ((times[place] - begin) / (end - begin)) * wide;
          const share = (count / most) ** 0.5;
          ctx.fillStyle = `rgb(${238 - 230 * share}, ${245 - 165 * share}, ${255 - 100 * share})`;
          ctx.fillRect(x - cellWidth, high - (index + 1) * cellHeight, Math.max(1, cellWidth - 1), cellHeight - 1);
        }
      });
    });
    ctx.fillStyle = theme.colors.text.primary;
    ctx.textAlign = 'right';
    const places = step
      ? ticks(0, rows.length * step).map((value) => [textOf(unit, value), value / step])
      : rows.map((row, index) => [row.name === '+Inf' ? '∞' : textOf(unit, Number.parseFloat(row.name)), index + 1]);
    const every = Math.ceil(places.length / (high / 18));
    places.filter((_, index) => index % every === 0).forEach(([text, row]) => {
      ctx.fillText(text, LEFT - 6, Math.max(10, high - row * cellHeight + 4));
    });
    ctx.textAlign = 'center';
    for (let part = 1; part < 6; part += 1) {
      const time = new Date(begin + ((end - begin) * part) / 6);
      ctx.fillText(time.toISOString().slice(11, 19), LEFT + (wide * part) / 6, height - 6);
    }
  });
  return <canvas ref={canvas} width={width} height={height} />;
}

export function StackedBars({ panel, frames, theme, width, height }) {
  const [frame] = frames;
  const [names, ...parts] = frame.fields;
  const color = (field) => getFieldSeriesColor(field, theme).color;
  const barHeight = (height - 60) / names.values.length;
  const of = (row) => parts.reduce((sum, field) => sum + (field.values[row] ?? 0), 0);
  const most = panel.fieldConfig.defaults.max ?? Math.max(...names.values.map((_, row) => of(row)));
  const items = parts.map((field) => ({ label: getFieldDisplayName(field, frame), color: color(field), yAxis: 1 }));
  return (
    <div style={{ width, height, overflow: 'hidden' }}>
      {names.values.map((name, row) => (
        <div key={name} style={{ display: 'flex', height: barHeight, alignItems: 'center' }}>
          <div style={{ width: 150, paddingRight: 8, textAlign: 'right', fontSize: 11, whiteSpace: 'nowrap', direction: 'rtl', overflow: 'hidden' }}>{name}</div>
          {parts.map((field) => {
            const wide = ((width - 170) * (field.values[row] ?? 0)) / most;
            const style = { width: wide, height: barHeight * 0.8, background: color(field), opacity: 0.7 };
            return <div key={field.name} style={style} />;
          })}
        </div>
      ))}
      <div style={{ paddingLeft: 158, fontSize: 12, display: 'flex', justifyContent: 'space-between' }}>
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share}>{textOf(parts[0], share * most)}</span>
        ))}
      </div>
      <VizLegend items={items} displayMode="list" placement="bottom" />
    </div>
  );
}

export function Against({ panel, frames, theme, width, height }) {
  const [frame] = frames;
  const find = ({ matcher }) => frame.fields.find((field) => getFieldDisplayName(field, frame) === matcher.options);
  const series = panel.options.series
    .map((one, index) => ({ name: one.name.fixed, x: find(one.x), y: find(one.y), index }))
    .filter(({ x, y }) => x && y);
  if (!series.length) {
    return null;
  }
  const named = (field, name) => ({ ...field, config: { ...field.config, displayName: name } });
  const color = ({ y, name, index }) =>
    y.config.color?.fixedColor ?? getFieldSeriesColor({ ...named(y, name), state: { ...y.state, seriesIndex: index } }, theme).color;
  const points = series.map(({ x, y }) =>
    x.values.map((value, row) => [value, y.values[row]]).filter((pair) => pair.every(Number.isFinite)),
  );
  const all = [...new Set(points.flatMap((each) => each.map(([value]) => value)))].sort((a, b) => a - b);
  const columns = points.map((each) => {
    const found = new Map(each);
    return all.map((value) => found.get(value));
  });
  const config = new UPlotConfigBuilder('utc');
  config.addScale({ scaleKey: 'x', isTime: false, orientation: 0, direction: 1 });
  config.addScale({ scaleKey: 'y', orientation: 1, direction: 1 });
  config.addAxis({ scaleKey: 'x', placement: 'bottom', theme, formatValue: (value) => textOf(series[0].x, value) });
  config.addAxis({ scaleKey: 'y', placement: 'left', theme, formatValue: (value) => textOf(series[0].y, value) });
  series.forEach((one) => {
    const shown = { scaleKey: 'y', theme, lineColor: color(one), pointColor: color(one) };
    config.addSeries({ ...shown, drawStyle: 'line', lineWidth: 1, showPoints: 'always', pointSize: 4, spanNulls: true });
  });
  const items = series.map((one) => ({ label: one.name, color: color(one), yAxis: 1 }));
  return (
    <div>
      <UPlotChart config={config} data={[all, ...columns]} width={width} height={height - 30} />
      <VizLegend items={items} displayMode="list" placement="bottom" />
    </div>
  );
}
