// Panels that Grafana's published packages draw themselves: one value, bars, curves, tables.

import { FieldType, getDisplayValueAlignmentFactors, getFieldDisplayValues } from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { useLayoutEffect } from 'react';

import { settingsOf } from './prepared.js';

function Repeated({ panel, frames, theme, width, height, replaceVariables, renderValue, ...more }) {
  const { options } = panel;
  const getValues = () =>
    getFieldDisplayValues({
      fieldConfig: settingsOf(panel),
      reduceOptions: options.reduceOptions,
      replaceVariables,
      theme,
      data: frames,
      sparkline: options.graphMode !== undefined && options.graphMode !== 'none',
      timeZone: 'utc',
    });
  return (
    <VizRepeater
      getValues={getValues}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={renderValue}
      width={width}
      height={height}
      source={frames}
      renderCounter={0}
      orientation={options.orientation}
      {...more}
    />
  );
}

export function Stat(properties) {
  const { panel, theme } = properties;
  const { colorMode, graphMode, justifyMode, textMode, text } = panel.options;
  const renderValue = ({ value, width, height, alignmentFactors, count }) => (
    <BigValue
      value={value.display}
      count={count}
      sparkline={value.sparkline}
      colorMode={colorMode}
      graphMode={graphMode}
      justifyMode={justifyMode}
      textMode={textMode}
      alignmentFactors={alignmentFactors}
      text={text}
      width={width}
      height={height}
      theme={theme}
      disableWideLayout={!panel.options.wideLayout}
    />
  );
  return <Repeated {...properties} renderValue={renderValue} autoGrid />;
}

export function Bars(properties) {
  const { panel, theme } = properties;
  const { options } = panel;
  const renderValue = ({ value, width, height, alignmentFactors, orientation }) => (
    <BarGauge
      value={value.display}
      width={width}
      height={height}
      orientation={orientation}
      field={value.field}
      display={value.view?.getFieldDisplayProcessor(value.colIndex)}
      text={options.text}
      theme={theme}
      itemSpacing={8}
      displayMode={options.displayMode}
      alignmentFactors={alignmentFactors}
      showUnfilled={options.showUnfilled}
      valueDisplayMode={options.valueMode}
      namePlacement={options.namePlacement}
    />
  );
  const { minVizWidth, minVizHeight, maxVizHeight } = options;
  const sizes = { minVizWidth, minVizHeight, maxVizHeight };
  return <Repeated {...properties} renderValue={renderValue} itemSpacing={8} {...sizes} />;
}

export function Curves({ panel, frames, theme, width, height, range, marks }) {
  const shown = frames
    .filter((frame) => frame.length && frame.fields.some((field) => field.type === FieldType.number))
    .map((frame) => ({ ...frame, fields: frame.fields.map(finite) }));
  return (
    <TimeSeries
      frames={shown}
      timeRange={range}
      timeZone="utc"
      width={width}
      height={height}
      legend={panel.options.legend}
      options={panel.options}
      theme={theme}
      structureRev={1}
    >
      {(config) => <Marks config={config} marks={marks} theme={theme} />}
    </TimeSeries>
  );
}

// What is no number is a gap, as in Grafana's own plugin.
function finite(field) {
  const isDrawn = field.type === FieldType.number && !field.values.every((value) => Number.isFinite(value));
  return isDrawn ? { ...field, values: field.values.map((each) => (Number.isFinite(each) ? each : null)) } : field;
}

// Vertical lines at the times of events, with a triangle below, as Grafana's own plugin has them.
function Marks({ config, marks, theme }) {
  useLayoutEffect(() => {
    config.addHook('draw', (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      for (const { time, color } of marks) {
        const x = plot.valToPos(time, 'x', true);
        if (x < bbox.left || x > bbox.left + bbox.width) {
          continue;
        }
        ctx.strokeStyle = ctx.fillStyle = theme.visualization.getColorByName(color);
        ctx.setLineDash([5, 5]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.beginPath();
        ctx.moveTo(x, bbox.top + bbox.height);
        ctx.lineTo(x - 5, bbox.top + bbox.height + 6);
        ctx.lineTo(x + 5, bbox.top + bbox.height + 6);
        ctx.fill();
      }
      ctx.restore();
    });
  }, [config, marks, theme]);
  return null;
}

export function Rows({ panel, frames, width, height }) {
  const { options } = panel;
  return (
    <TableNG
      data={frames[options.frameIndex ?? 0] ?? frames[0]}
      width={width}
      height={height}
      noHeader={!options.showHeader}
      sortBy={options.sortBy}
      enablePagination={options.enablePagination}
      cellHeight={options.cellHeight}
      fieldConfig={settingsOf(panel)}
      structureRev={1}
      resizable
    />
  );
}
