//! What a configuration and its flags say, before any memory is known.

use super::around::{attention_ranks, context};
use super::cells::{self, Cells, Setting};
use super::code::{as_read, shapes};
use super::page::page;
use super::pool::Pool;
use super::states::{self, States};
use crate::engines::Shapes;
use crate::gpu::Gpu;
use crate::launch::Launch;
use crate::model::Model;
use crate::outcome::PlanError;

/// Weights, and what a pool is cut by.
pub(super) struct Read {
    pub(super) shapes: Shapes,
    pub(super) kv_dtype: String,
    /// Of each pipeline stage.
    pub(super) cells: Result<Vec<Cells>, PlanError>,
    pub(super) states: Result<Option<States>, PlanError>,
    page: u64,
    context: u64,
}

impl Read {
    pub(super) fn new(model: &Model, launch: &Launch, gpu: &Gpu) -> Result<Self, PlanError> {
        let attention_tp = attention_ranks(launch)?;
        let context = context(model, launch)?;
        let model = &*as_read(model);
        let shapes = shapes(model, launch, gpu, attention_tp)?;
        let (kv_dtype, element) = cells::dtype(model, launch, gpu, shapes.dtype)?;
        let setting = Setting { launch, gpu, attention_tp, element };
        let cells = (0..launch.pp).map(|s| cells::cells(model, &setting, &shapes.stage_of, s)).collect();
        let states = states::states(model, launch, attention_tp, &shapes.stage_of);
        Ok(Self { shapes, kv_dtype, cells, states, page: page(model, launch, gpu), context })
    }

    pub(super) fn pool<'a>(
        &'a self,
        launch: &'a Launch,
        cells: &'a [Cells],
        states: Option<States>,
        chunk: Option<u64>,
    ) -> Pool<'a> {
        Pool {
            launch,
            cells,
            states,
            page: self.page,
            context: self.context,
            chunk,
            kv_dtype: &self.kv_dtype,
        }
    }
}
