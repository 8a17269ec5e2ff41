// Draws one dashboard: asks what it asks, prepares what is answered, and puts its panels where Grafana would.

import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';

import { createTheme, dateTime, FieldType, ThemeContext } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles, PanelChrome } from '@grafana/ui';
import { Component } from 'react';
import { createRoot } from 'react-dom/client';

import { answersOf, Prometheus, stepOf, stepVariables } from './asking.js';
import { Against, Heat, StackedBars } from './near.jsx';
import { Bars, Curves, Rows, Stat } from './panels.jsx';
import { prepare, settingsOf } from './prepared.js';
import { choose, fillIn, fillInLink } from './variables.js';

const [ROW, GAP, EDGE, TOP] = [30, 8, 16, 96]; // pixels of Grafana's grid and of what is around it
const DRAWN = {
  stat: [Stat, 'Grafana'],
  bargauge: [Bars, 'Grafana'],
  timeseries: [Curves, 'Grafana'],
  table: [Rows, 'Grafana'],
  heatmap: [Heat, 'near: the plugin is not published'],
  barchart: [StackedBars, 'near: the plugin is not published'],
  xychart: [Against, 'near: the plugin is not published'],
};

const fetching = new Set(); // what is on its way: answers, and icons, for which panels ask once they are drawn
const { fetch } = window;
window.fetch = (...asked) => {
  const answer = fetch(...asked);
  const done = () => fetching.delete(answer);
  fetching.add(answer);
  answer.then(done, done);
  return answer;
};
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Boundary extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidCatch(error) {
    this.props.told.error = String(error);
  }

  render() {
    return this.state.error ? <div style={{ color: 'red' }}>{String(this.state.error)}</div> : this.props.children;
  }
}

// Everything that a panel shows, and what is told of it.
async function fetched(panel, prometheus, range, pixels, chosen, theme) {
  const asked = [];
  const told = { title: panel.title, type: panel.type, by: DRAWN[panel.type][1], asked, links: [], error: null };
  const stepMs = stepOf(range, pixels);
  const words = stepVariables(range, stepMs);
  const fill = (text) => fillIn(text, chosen, words);
  const replace = (text, scoped) => fillInLink(text, chosen, range, scoped);
  let frames = [];
  try {
    const answers = await answersOf(panel.targets, prometheus, range, stepMs, fill, asked);
    frames = await prepare(panel, answers, theme, replace);
  } catch (error) {
    told.error = String(error);
  }
  const numbers = frames.flatMap((frame) => frame.fields.filter((field) => field.type === FieldType.number));
  told.isEmpty = !frames.some(({ fields }) => fields.some(({ type, values }) => type !== FieldType.time && values.some((each) => each != null)));
  told.names = numbers.map((field) => field.config.displayName ?? field.config.displayNameFromDS ?? field.name);
  told.reason = told.isEmpty ? (panel.fieldConfig.defaults.noValue ?? null) : null;
  told.links = linksOf(frames);
  return { panel, frames, told, replace };
}

function linksOf(frames) {
  const found = new Set();
  for (const frame of frames) {
    for (const field of frame.fields) {
      if (field.config.links?.length && frame.length) {
        field.getLinks({ valueRowIndex: 0 }).forEach((link) => found.add(link.href));
      }
    }
  }
  return [...found];
}

async function marksOf(dashboard, prometheus, range, chosen) {
  const [start, end] = [range.from.valueOf() / 1000, range.to.valueOf() / 1000];
  const marks = [];
  for (const one of dashboard.annotations.list) {
    const asked = { query: fillIn(one.expr, chosen), start, end, step: Math.max(5, Math.ceil((end - start) / 1000)) };
    const { result } = await prometheus.get('query_range', asked);
    const times = new Set(result.flatMap(({ values }) => values.map(([, text]) => Number.parseFloat(text))));
    marks.push(...[...times].map((time) => ({ time, color: one.iconColor })));
  }
  return marks;
}

function place({ x, y, w, h }, width) {
  const column = (width - 2 * EDGE - 23 * GAP) / 24;
  return {
    position: 'absolute',
    left: EDGE + x * (column + GAP),
    top: TOP + y * (ROW + GAP),
    width: w * column + (w - 1) * GAP,
    height: h * ROW + (h - 1) * GAP,
  };
}

function Panel({ shown, box, theme, range, marks }) {
  const { panel, frames, told, replace } = shown;
  const [Drawn] = DRAWN[panel.type];
  const { width, height } = box;
  return (
    <div style={box}>
      <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
        {(innerWidth, innerHeight) => (
          <Boundary told={told}>
            {told.isEmpty && panel.type !== 'stat' ? (
              <div style={{ height: innerHeight, display: 'grid', placeItems: 'center', color: theme.colors.text.secondary }}>
                {settingsOf(panel).defaults.noValue ?? 'No data'}
              </div>
            ) : (
              <Drawn {...{ panel, frames, theme, range, marks }} replaceVariables={replace} width={innerWidth} height={innerHeight} />
            )}
          </Boundary>
        )}
      </PanelChrome>
    </div>
  );
}

function Top({ dashboard, chosen, range }) {
  const shown = dashboard.templating.list.filter((one) => one.hide !== 2);
  return (
    <div style={{ position: 'absolute', left: EDGE, top: 12, right: EDGE, fontSize: 14 }}>
      <div style={{ fontSize: 18 }}>
        {dashboard.title} <span style={{ fontSize: 12 }}>{range.from.toISOString()} to {range.to.toISOString()}</span>
      </div>
      <div style={{ display: 'flex', gap: 16, marginTop: 16, whiteSpace: 'nowrap', overflow: 'hidden' }}>
        {shown.map((one) => (
          <span key={one.name}>
            {one.label ?? one.name}: <b>{chosen[one.name].text}</b>
          </span>
        ))}
        {dashboard.links.map((link) => (
          <span key={link.title}>[{link.title}]</span>
        ))}
      </div>
    </div>
  );
}

function Told({ shown, top }) {
  return (
    <table style={{ position: 'absolute', top, left: EDGE, fontSize: 11 }}>
      <tbody>
        {shown.map(({ told }) => (
          <tr key={told.title}>
            <td style={{ paddingRight: 16 }}>{told.title}</td>
            <td style={{ paddingRight: 16 }}>{told.type}</td>
            <td style={{ paddingRight: 16 }}>drawn by {told.by}</td>
            <td>{told.error ?? (told.isEmpty ? `empty: ${told.reason ?? 'NO REASON GIVEN'}` : `${told.names.length} series`)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// Draws `order`: dashboard, address, from and to in milliseconds, theme, given. Returns what is told of each panel.
window.draw = async ({ dashboard, address, from, to, mode, given }) => {
  await initPluginTranslations('edgebed', []);
  const theme = createTheme({ colors: { mode } });
  const range = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
  const prometheus = new Prometheus(address);
  const chosen = await choose(dashboard, given, prometheus, range);
  const marks = await marksOf(dashboard, prometheus, range, chosen);
  const width = window.innerWidth;
  const panels = dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  const boxes = new Map(panels.map((panel) => [panel.id, place(panel.gridPos, width)]));
  const data = panels.filter((panel) => panel.type !== 'row');
  const shown = await Promise.all(
    data.map((panel) => fetched(panel, prometheus, range, boxes.get(panel.id).width, chosen, theme)),
  );
  const bottom = Math.max(...[...boxes.values()].map((box) => box.top + box.height));
  createRoot(document.getElementById('drawn')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles isExtensionSidebarOpen={false} hackNoBackdropBlur={false} />
      <div style={{ position: 'relative', height: bottom + 40 + 18 * shown.length, background: theme.colors.background.canvas }}>
        <Top dashboard={dashboard} chosen={chosen} range={range} />
        {panels
          .filter((panel) => panel.type === 'row')
          .map((panel) => (
            <div key={panel.id} style={{ ...boxes.get(panel.id), fontSize: 16, lineHeight: '30px' }}>
              {panel.collapsed ? '▸' : '▾'} {panel.title}
            </div>
          ))}
        {shown.map((one) => (
          <Panel key={one.panel.id} shown={one} box={boxes.get(one.panel.id)} {...{ theme, range, marks }} />
        ))}
        <Told shown={shown} top={bottom + 20} />
      </div>
    </ThemeContext.Provider>,
  );
  await document.fonts.ready;
  await pause(300);
  await Promise.allSettled(fetching);
  await pause(100);
  const values = Object.fromEntries(Object.entries(chosen).map(([name, { value }]) => [name, value]));
  return { panels: shown.map(({ told }) => told), chosen: values, bottom };
};
