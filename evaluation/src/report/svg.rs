//! Charts as SVG. Colours are classes, which the page's style gives for light and dark.

use maud::{Markup, html};

use crate::summary::Mean;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;

/// Style of the charts; a page puts it into its head, a file into itself.
pub const STYLE: &str = "\
:root{--ink:#1c2733;--faint:#8794a1;--rule:#dde3e8;--paper:#fff;\
--c0:#2f6fb0;--c1:#d9822b;--c2:#3a9a5b;--c3:#b0476b;--c4:#7a62b8;--c5:#7d8b2e;--c6:#5b7c8d;--c7:#c0b283}\
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--faint:#8c9aa8;--rule:#303a44;--paper:#14191e;\
--c0:#6aa9e8;--c1:#f0a45a;--c2:#6cc98c;--c3:#e27f9f;--c4:#ab97e6;--c5:#b5c45a;--c6:#8fb3c4;--c7:#8a7d55}}\
svg text{fill:var(--ink);font:11px system-ui,sans-serif}svg .rule{stroke:var(--rule)}svg .faint{fill:var(--faint)}\
svg .mark{stroke:var(--ink);stroke-dasharray:5 4;fill:none}svg .error{stroke:var(--ink)}\
.s0{fill:var(--c0)}.s1{fill:var(--c1)}.s2{fill:var(--c2)}.s3{fill:var(--c3)}.s4{fill:var(--c4)}.s5{fill:var(--c5)}\
.s6{fill:var(--c6)}.s7{fill:var(--c7)}\
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}\
.line{fill:none;stroke-width:2}";

/// Values of one name over all groups.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// A value a group; `None` where it is not known.
    pub values: Vec<Option<Mean>>,
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it is about, for those who cannot see it.
    pub title: String,
    /// Name and unit of the values.
    pub unit: String,
    /// Groups along the axis.
    pub groups: Vec<String>,
    /// Series in each group.
    pub series: Vec<Series>,
    /// Published values, as lines across: name and value.
    pub published: Vec<(String, f64)>,
}

/// A value at whose multiples lines are drawn, about five of them.
fn step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= rough).unwrap_or(rough)
}

/// A number with as many digits as help.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Chart {
    fn most(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| &series.values).flatten();
        let values = values.map(|mean| mean.value + mean.deviation.unwrap_or(0.0));
        values.chain(self.published.iter().map(|(_, value)| *value)).fold(1e-9, f64::max) * 1.06
    }

    fn y(&self, value: f64) -> f64 {
        let share = value.max(0.0) / self.most();
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn frame(&self, inner: Markup) -> Markup {
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let step = step(self.most());
        let ticks: Vec<f64> = (0..=20).map(|n| f64::from(n) * step).take_while(|tick| *tick <= self.most()).collect();
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" {
                title { (self.title) }
                @for tick in ticks {
                    line class="rule" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(self.y(tick)) y2=(self.y(tick)) {}
                    text x=(LEFT - 6.0) y=(self.y(tick) + 4.0) text-anchor="end" { (number(tick)) }
                }
                text class="faint" x="4" y="10" { (self.unit) }
                @for (i, group) in self.groups.iter().enumerate() {
                    text x=(LEFT + width * (i as f64 + 0.5)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (group) }
                }
                (inner)
                @for (name, value) in &self.published {
                    line class="mark" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(self.y(*value)) y2=(self.y(*value)) {}
                    text x=(WIDTH - RIGHT) y=(self.y(*value) - 4.0) text-anchor="end" { (name) " " (number(*value)) }
                }
            }
        }
    }

    /// Bars beside each other, with error bars.
    pub fn bars(&self) -> Markup {
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let bar = width * 0.82 / self.series.len().max(1) as f64;
        let left = |i: usize, n: usize| LEFT + width * (i as f64 + 0.09) + bar * n as f64;
        let foot = self.y(0.0);
        self.frame(html! {
            @for (n, series) in self.series.iter().enumerate() {
                @for (i, mean) in series.values.iter().enumerate() {
                    @if let Some(Mean { value, deviation }) = mean {
                        rect class=(format!("s{}", n % 8)) x=(left(i, n)) width=(bar * 0.94) y=(self.y(*value)) height=(foot - self.y(*value)) {
                            title { (self.groups[i]) ", " (series.name) ": " (number(*value)) }
                        }
                        @if let Some(d) = deviation {
                            @let x = left(i, n) + bar * 0.47;
                            line class="error" x1=(x) x2=(x) y1=(self.y(value - d)) y2=(self.y(value + d)) {}
                        }
                    }
                }
            }
        })
    }

    /// Lines over the groups.
    pub fn lines(&self) -> Markup {
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let x = |i: usize| LEFT + width * (i as f64 + 0.5);
        let points = |series: &Series| -> Vec<(usize, Mean)> {
            series.values.iter().enumerate().filter_map(|(i, mean)| Some((i, (*mean)?))).collect()
        };
        self.frame(html! {
            @for (n, series) in self.series.iter().enumerate() {
                @let points = points(series);
                @let path = points.iter().map(|(i, mean)| format!("{:.1},{:.1}", x(*i), self.y(mean.value))).collect::<Vec<_>>().join(" ");
                polyline class=(format!("line l{}", n % 6)) points=(path) {}
                @for (i, Mean { value, deviation }) in points {
                    circle class=(format!("s{}", n % 8)) cx=(x(i)) cy=(self.y(value)) r="3.5" {
                        title { (self.groups[i]) ", " (series.name) ": " (number(value)) }
                    }
                    @if let Some(d) = deviation {
                        line class="error" x1=(x(i)) x2=(x(i)) y1=(self.y(value - d)) y2=(self.y(value + d)) {}
                    }
                }
            }
        })
    }

    /// Series on top of each other in each group.
    pub fn stacked(&self) -> Markup {
        let tops: Vec<f64> = (0..self.groups.len())
            .map(|i| self.series.iter().filter_map(|series| Some(series.values[i]?.value.max(0.0))).sum())
            .collect();
        let total = Series {
            name: String::new(),
            values: tops.iter().map(|&value| Some(Mean { value, deviation: None })).collect(),
        };
        // The scale is that of the sums.
        let scale = Chart { series: vec![total], ..self.clone() };
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        scale.frame(html! {
            @for i in 0..self.groups.len() {
                @for (n, series) in self.series.iter().enumerate() {
                    @let below: f64 = self.series[..n].iter().filter_map(|s| Some(s.values[i]?.value.max(0.0))).sum();
                    @if let Some(Mean { value, .. }) = series.values[i] {
                        @let (top, foot) = (scale.y(below + value.max(0.0)), scale.y(below));
                        rect class=(format!("s{}", n % 8)) x=(LEFT + width * (i as f64 + 0.15)) width=(width * 0.7) y=(top) height=(foot - top) {
                            title { (self.groups[i]) ", " (series.name) ": " (number(value)) }
                        }
                    }
                }
            }
        })
    }

    /// Which colour is what.
    pub fn legend(&self) -> Markup {
        html! {
            p class="legend" {
                @for (n, series) in self.series.iter().enumerate() {
                    span { svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true" { rect class=(format!("s{}", n % 8)) width="10" height="10" {} } " " (series.name) }
                    " "
                }
                @if !self.published.is_empty() { span { "- - published" } }
            }
        }
    }

    /// The values as a table.
    pub fn table(&self) -> Markup {
        let cell = |mean: &Option<Mean>| match mean {
            None => "not available".to_owned(),
            Some(Mean { value, deviation: None }) => number(*value),
            Some(Mean { value, deviation: Some(d) }) => format!("{} ± {}", number(*value), number(*d)),
        };
        html! {
            details {
                summary { "values (" (self.unit) ")" }
                div class="wide" {
                    table {
                        tr { th {} @for group in &self.groups { th { (group) } } }
                        @for series in &self.series {
                            tr { th { (series.name) } @for mean in &series.values { td { (cell(mean)) } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(step(10.0), 2.0);
        assert_eq!(step(2.2), 0.5);
        assert_eq!(step(97.0), 20.0);
    }
}
