import type { Panel as P, RowPanel, AnnotationQuery, VariableModel, DashboardLink, TimePickerConfig, FieldConfig, MatcherConfig, DataTransformerConfig, DataSourceRef, GridPos } from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type { Dashboard as D } from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';
import type * as c from './node_modules/@grafana/schema/dist/types/common/common.gen';
import type { Options as TsO, FieldConfig as TsF } from './node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';
import type { Options as StO } from './node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type { Options as TxO } from './node_modules/@grafana/schema/dist/types/raw/composable/text/panelcfg/x/types.gen';
import type { Options as TaO, FieldConfig as TaF } from './node_modules/@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import type { Options as SlO, FieldConfig as SlF } from './node_modules/@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen';
import type { Options as BgO } from './node_modules/@grafana/schema/dist/types/raw/composable/bargauge/panelcfg/x/types.gen';
// What Prometheus' data source reads of a query and of an annotation; the package leaves both open.
interface PromTarget extends c.DataQuery { datasource: DataSourceRef; expr: string; legendFormat?: string; editorMode?: 'code'; range?: boolean; instant?: boolean; format?: 'table' | 'time_series'; }
type F<C> = Omit<FieldConfig, 'custom' | 'links'> & { custom?: C; links?: Array<{ title: string; url: string; targetBlank?: boolean }> };
type FS<C> = { defaults: F<C>; overrides: Array<{ matcher: MatcherConfig; properties: Array<{ id: string; value?: unknown }> }> };
type Pan<T extends string, O, C> = Omit<P, 'type' | 'options' | 'fieldConfig' | 'targets' | 'id' | 'gridPos' | 'title'> & { type: T; id: number; title: string; gridPos: GridPos; options: O; fieldConfig?: FS<C>; targets?: PromTarget[] };
type Text = Pan<'text', TxO, Record<string, never>>;
type AnyPanel = Pan<'timeseries', TsO, TsF> | Pan<'stat', StO, Record<string, never>> | Text | Pan<'table', TaO, Partial<TaF>> | Pan<'state-timeline', SlO, SlF> | Pan<'bargauge', BgO, Record<string, never>>;
interface Anno extends Omit<AnnotationQuery, 'target'> { target?: PromTarget; titleFormat?: string; textFormat?: string; tagKeys?: string }
export interface Board extends Omit<D, 'panels' | 'annotations' | 'templating'> { uid: string; title: string; panels: Array<AnyPanel | RowPanel>; annotations?: { list?: Anno[] }; templating: { list: VariableModel[] } }
