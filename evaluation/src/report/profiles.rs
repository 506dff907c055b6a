//! Every value of every profile, with its source.

use anyhow::Result;
use maud::{Markup, html};
use nearpm_sim::profile::EMBEDDED;

use super::profile;

/// The section of the page.
pub fn section() -> Result<Markup> {
    let profiles = EMBEDDED.iter().map(|(name, _)| profile(name)).collect::<Result<Vec<_>>>()?;
    Ok(html! {
        section id="profiles" {
            h2 { "Profiles" }
            p { "Every parameter of the timing model, with its source. A file of the same form is loaded with " code { "nearpm bench --profiles FILE" } "." }
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
