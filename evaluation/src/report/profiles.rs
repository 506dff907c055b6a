//! Every value of every profile, with its source, and where the other parameters are.

use anyhow::Result;
use maud::{Markup, html};
use nearpm_sim::profile::EMBEDDED;

use super::profile;
use crate::compute::Compute;
use crate::served::{EPOCH, RELEASED_TOUCHES};

/// The section of the page.
pub fn section(compute: &Compute) -> Result<Markup> {
    let profiles = EMBEDDED.iter().map(|(name, _)| profile(name)).collect::<Result<Vec<_>>>()?;
    Ok(html! {
        section id="profiles" {
            h2 { "Profiles" }
            p {
                "Every value of the profiles, with its source; many are estimates, and their sources say so. A file of the same form is loaded with "
                code { "nearpm bench --profiles FILE" } "."
            }
            p { "The timing model has parameters that are in no profile, the same for all:" }
            ul {
                li { "latencies of the card's stages, in its cycles: " code { "sim/src/model/timing.rs" } ", fitted to micro-traces of the RTL" }
                li { "the DDR4 behind it: " code { "sim/src/ddr4/config.rs" } ", from JEDEC, Micron and AMD, and, for the controller's stages, estimates" }
                li {
                    (EPOCH) " transactions an epoch; with released inputs " (RELEASED_TOUCHES) " first touches: " code { "evaluation/src/served.rs" }
                }
                li { "the pause between two polls for a completion, 10 ns, the driver's own: " code { "driver/src/page.rs" } }
                li { "instructions of programs and library: the table below, measured (" (compute.origin) ")" }
            }
            details {
                summary { "instructions, ns a transaction (" code { "evaluation/compute.toml" } ")" }
                div class="wide" {
                    table {
                        tr { @for heading in ["program", "its own", "request", "undo", "redo", "checkpoint", "shadow"] { th { (heading) } } }
                        @for (name, times) in &compute.programs {
                            tr {
                                td { (name) }
                                @for ns in [times.program_ns, times.request_ns, times.undo_ns, times.redo_ns, times.checkpoint_ns, times.shadow_ns] { td { (ns) } }
                            }
                        }
                    }
                }
            }
            @for profile in profiles {
                details {
                    summary { code { (profile.name) } ": " (profile.title) }
                    div class="wide" {
                        table {
                            tr { th { "parameter" } th { "value" } th { "source" } }
                            @for entry in profile.entries() {
                                tr {
                                    td { (entry.section) "." (entry.key) }
                                    td { (entry.sourced.value) }
                                    td style="text-align:left" { (entry.sourced.source) }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}
