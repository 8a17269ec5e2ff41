// What is chosen at the top of a dashboard, found as Grafana finds it; and Grafana's own words in queries and links.

import { getFieldDisplayValuesProxy } from '@grafana/data';

const WORD = /\$\{([\w.[\]" ]+)(?::(\w+))?\}|\$(\w+)/g;

// Each variable's value: {text, value}, of which the value stands in queries. `given` overrides what Grafana would choose.
export async function choose(dashboard, given, prometheus, range) {
  const chosen = {};
  for (const one of dashboard.templating.list) {
    const offered = await offers(one, chosen, prometheus, range);
    if (one.name in given) {
      chosen[one.name] = { text: given[one.name], value: given[one.name], offered };
    } else if (one.type === 'query' && one.includeAll) {
      chosen[one.name] = { text: 'All', value: one.allValue ?? `(${offered.join('|')})`, all: true, offered };
    } else {
      const value = one.type === 'custom' ? one.current.value : (offered[0] ?? '');
      chosen[one.name] = { text: value, value, offered };
    }
  }
  return chosen;
}

async function offers(variable, chosen, prometheus, range) {
  if (variable.type !== 'query') {
    return variable.query.split(',').map((each) => each.trim());
  }
  const [, kind, asked] = variable.query.query.match(/^(\w+)\((.*)\)$/s);
  const rangeS = Math.round((range.to.valueOf() - range.from.valueOf()) / 1000);
  const fill = (text) => fillIn(text, chosen, { __range: `${rangeS}s` });
  const [start, end] = [range.from.valueOf() / 1000, range.to.valueOf() / 1000];
  let found;
  if (kind === 'label_values') {
    const [, series, label] = asked.match(/^(.*), (\w+)$/s);
    found = await prometheus.get(`label/${label}/values`, { 'match[]': fill(series), start, end });
  } else {
    const { result } = await prometheus.get('query', { query: fill(asked), time: end });
    found = result.map(({ metric, value }) => {
      const { __name__: name = '', ...labels } = metric;
      const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`);
      return `${name}{${pairs.join(',')}} ${value[1]} ${value[0] * 1000}`;
    });
  }
  if (variable.regex) {
    const pattern = new RegExp(variable.regex.slice(1, variable.regex.lastIndexOf('/')));
    found = found.map((line) => line.match(pattern)?.[1]).filter((each) => each !== undefined);
  }
  found = [...new Set(found)];
  return variable.sort ? found.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })) : found;
}

// A text with values in place of `$name`; `more` are Grafana's own words.
export function fillIn(text, chosen, more = {}) {
  return text.replace(WORD, (whole, braced, format, bare) => {
    const name = braced ?? bare;
    if (name in more) {
      return more[name];
    }
    if (!(name in chosen)) {
      return whole;
    }
    const { value, text: shown, all } = chosen[name];
    return format === 'queryparam' ? `var-${name}=${encodeURIComponent(all ? '$__all' : shown)}` : value;
  });
}

// A link's text, for the cell or point that it is at.
export function fillInLink(text, chosen, range, scoped) {
  const { frame, rowIndex, field } = scoped?.__dataContext?.value ?? {};
  const fields = frame ? getFieldDisplayValuesProxy({ frame, rowIndex: rowIndex ?? 0 }) : {};
  const words = {
    __url_time_range: `from=${range.from.valueOf()}&to=${range.to.valueOf()}`,
    __from: String(range.from.valueOf()),
    __to: String(range.to.valueOf()),
  };
  for (const each of frame?.fields ?? []) {
    const name = each.state?.displayName ?? each.name;
    const shown = fields[name];
    words[`__data.fields.${name}`] = encodeURIComponent(String(shown));
    words[`__data.fields.${name}.numeric`] = String(shown?.numeric);
  }
  words['__value.raw'] = words['__value.text'] = encodeURI(String(field?.values[rowIndex ?? 0] ?? ''));
  for (const [name, value] of Object.entries(field?.labels ?? {})) {
    words[`__field.labels.${name}`] = encodeURIComponent(value);
  }
  return fillIn(text, chosen, words);
}
