// From a panel's frames to fields with units, thresholds, mappings, links: by Grafana's transformations and overrides.

import {
  applyFieldOverrides,
  cacheFieldDisplayNames,
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  FieldConfigOptionsRegistry,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardTransformers,
  standardTransformersRegistry,
  thresholdsOverrideProcessor,
  transformDataFrame,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import { lastValueFrom } from 'rxjs';

standardTransformersRegistry.setInit(() =>
  [...new Map(Object.values(standardTransformers).map((each) => [each.id, each])).values()].map(
    (each) => ({ id: each.id, name: each.name, transformation: async () => each }),
  ),
);

const STANDARD = {
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  color: identityOverrideProcessor,
  noValue: identityOverrideProcessor,
  links: dataLinksOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  fieldMinMax: identityOverrideProcessor,
};
// What a kind of panel assumes where the file says nothing; of those that have settings of their own.
const ASSUMED = {
  timeseries: {
    drawStyle: 'line',
    lineInterpolation: 'linear',
    lineWidth: 1,
    fillOpacity: 0,
    gradientMode: 'none',
    showPoints: 'auto',
    pointSize: 5,
    barAlignment: 0,
    stacking: { mode: 'none', group: 'A' },
    axisPlacement: 'auto',
    axisGridShow: true,
    axisCenteredZero: false,
    thresholdsStyle: { mode: 'off' },
    spanNulls: false,
    transform: null,
    lineStyle: { fill: 'solid' },
  },
  table: { width: null, minWidth: null, align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: false },
};
const BASE = { mode: 'absolute', steps: [{ value: null, color: 'green' }, { value: 80, color: 'red' }] };
const COLORED_BY_VALUE = new Set(['stat', 'bargauge', 'table']);

function registry(custom) {
  const found = new FieldConfigOptionsRegistry();
  const add = (id, path, process, isCustom) =>
    found.register({ id, path, name: id, process, isCustom, settings: {}, shouldApply: () => true, override: () => null });
  for (const [id, process] of Object.entries(STANDARD)) {
    add(id, id, process, false);
  }
  for (const key of Object.keys(custom)) {
    add(`custom.${key}`, key, identityOverrideProcessor, true);
  }
  return found;
}

// The panel's settings as Grafana completes them.
export function settingsOf(panel) {
  const { defaults, overrides } = panel.fieldConfig;
  const custom = { ...ASSUMED[panel.type], ...defaults.custom };
  const mode = COLORED_BY_VALUE.has(panel.type) ? 'thresholds' : 'palette-classic';
  const color = defaults.color?.mode ? defaults.color : { mode };
  return { defaults: { thresholds: BASE, ...defaults, color, custom }, overrides };
}

export async function prepare(panel, frames, theme, replaceVariables) {
  const context = { interpolate: (text) => replaceVariables(text) };
  const data = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames, context));
  const fieldConfig = settingsOf(panel);
  const fieldConfigRegistry = registry(fieldConfig.defaults.custom);
  const done = applyFieldOverrides({ data, fieldConfig, fieldConfigRegistry, replaceVariables, theme, timeZone: 'utc' });
  cacheFieldDisplayNames(done);
  return done;
}
