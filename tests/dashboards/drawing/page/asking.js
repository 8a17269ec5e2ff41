// What Grafana asks Prometheus, and the frames that its server makes of the answers.

import { FieldType, rangeUtil } from '@grafana/data';
import { transformV2 } from '../node_modules/@grafana/prometheus/dist/esm/result_transformer.mjs';

const SCRAPES_S = 5; // as the provisioned data source says: from it the rates' windows are made

export class Prometheus {
  constructor(address) {
    this.address = address;
  }

  async get(path, parameters) {
    const address = `${this.address}/api/v1/${path}?${new URLSearchParams(parameters)}`;
    const answer = await fetch(address).catch(() => fetch(address)); // once more: a connection may just have been closed
    const said = await answer.json();
    if (said.status !== 'success') {
      throw new Error(said.error);
    }
    return said.data;
  }
}

// The step of a panel that is so many pixels wide, in milliseconds.
export function stepOf(range, pixels) {
  return rangeUtil.calculateInterval(range, Math.max(1, Math.floor(pixels)), `${SCRAPES_S}s`).intervalMs;
}

// Grafana's own variables of such a step.
export function stepVariables(range, stepMs) {
  const step = stepMs / 1000;
  const rangeS = Math.round((range.to.valueOf() - range.from.valueOf()) / 1000);
  return {
    __interval: `${step}s`,
    __rate_interval: `${Math.max(step + SCRAPES_S, 4 * SCRAPES_S)}s`,
    __range: `${rangeS}s`,
  };
}

// The frames of a panel's queries; what was asked is put into `asked`.
export async function answersOf(targets, prometheus, range, stepMs, fill, asked) {
  const frames = [];
  for (const target of targets) {
    const query = fill(target.expr);
    const [begin, end] = [range.from.valueOf() / 1000, range.to.valueOf() / 1000];
    const step = stepMs / 1000;
    const data = target.instant
      ? await prometheus.get('query', { query, time: end })
      : await prometheus.get('query_range', { query, start: Math.floor(begin / step) * step, end, step });
    asked.push({ query, series: data.result.length });
    frames.push(...framesOf(target, data, stepMs));
  }
  return transformV2({ data: frames }, { targets, app: 'dashboard' }, {}).data;
}

// A frame for each series.
function framesOf(target, data, stepMs) {
  const series = data.resultType === 'scalar' ? [{ metric: {}, value: data.result }] : data.result;
  return series.map(({ metric, value, values }) => {
    const samples = values ?? [value];
    return {
      refId: target.refId,
      length: samples.length,
      meta: { type: 'timeseries-multi', custom: { resultType: data.resultType } },
      fields: [
        {
          name: 'Time',
          type: FieldType.time,
          config: { interval: stepMs },
          values: samples.map(([seconds]) => seconds * 1000),
        },
        {
          name: 'Value',
          type: FieldType.number,
          labels: metric,
          config: { displayNameFromDS: legendOf(target, metric) },
          values: samples.map(([, text]) => numberOf(text)),
        },
      ],
    };
  });
}

function legendOf({ legendFormat, expr }, metric) {
  return legendFormat ? legendFormat.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? '').trim() : expr;
}

function numberOf(text) {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number.parseFloat(text);
}
