//! Charts as SVG. Colours are classes, which the page's style gives for light and dark.
//!
//! Hand-written, since `plotters` and `charming` put the colours into the drawing, and one drawing
//! is to follow the reader's light or dark page; both know no mark for a limit that no card could
//! pass, which each bar of these figures has.

use maud::{Markup, PreEscaped, html};

use super::table::MISSING;
use crate::summary::Mean;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;
/// Room for the heading of a file.
const HEAD: f64 = 30.0;
/// Heights of a line of the legend and of the notes of a file.
const LEGEND_LINE: f64 = 18.0;
const NOTE_LINE: f64 = 15.0;
/// About the width of a letter.
const LETTER: f64 = 6.0;
/// Groups that are narrower than this have names in smaller letters.
const NARROW: f64 = 65.0;

/// Style of the charts; a page puts it into its head, a file into itself.
pub const STYLE: &str = "\
:root{--ink:#1c2733;--faint:#8794a1;--rule:#dde3e8;--paper:#fff;\
--c0:#2f6fb0;--c1:#d9822b;--c2:#3a9a5b;--c3:#b0476b;--c4:#7a62b8;--c5:#7d8b2e;--c6:#5b7c8d;--c7:#c0b283}\
@media(prefers-color-scheme:dark){:root{--ink:#e4eaf0;--faint:#8c9aa8;--rule:#303a44;--paper:#14191e;\
--c0:#6aa9e8;--c1:#f0a45a;--c2:#6cc98c;--c3:#e27f9f;--c4:#ab97e6;--c5:#b5c45a;--c6:#8fb3c4;--c7:#8a7d55}}\
svg text{fill:var(--ink);font:11px system-ui,sans-serif}svg .rule{stroke:var(--rule)}svg .faint{fill:var(--faint)}svg .small{font-size:9px}\
svg .mark{stroke:var(--ink);stroke-dasharray:5 4;fill:none}svg .error{stroke:var(--ink)}\
.s0{fill:var(--c0)}.s1{fill:var(--c1)}.s2{fill:var(--c2)}.s3{fill:var(--c3)}.s4{fill:var(--c4)}.s5{fill:var(--c5)}\
.s6{fill:var(--c6)}.s7{fill:var(--c7)}\
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}\
.l6{stroke:var(--c6)}.l7{stroke:var(--c7)}.line{fill:none;stroke-width:2}.limit{stroke-dasharray:2 3}";

/// Values of one name over all groups.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// A value a group; `None` where it is not known.
    pub values: Vec<Option<Mean>>,
    /// Values that nothing can go beyond. The scale is that of the others, and what is higher than
    /// the chart ends at its edge.
    pub is_limit: bool,
}

impl Series {
    /// Values that are drawn whole.
    pub fn new(name: impl Into<String>, values: Vec<Option<Mean>>) -> Series {
        Series { name: name.into(), values, is_limit: false }
    }

    /// The same, as a limit.
    pub fn into_limit(self) -> Series {
        Series { is_limit: true, ..self }
    }
}

/// Forms of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bars beside each other.
    Bars,
    /// Lines.
    Lines,
    /// Bars on top of each other.
    Stacked,
}

/// A part of a chart, with axes of its own.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is in it and in no other; empty where there is one alone.
    pub name: String,
    /// Series in each group, by the same names in each panel.
    pub series: Vec<Series>,
}

impl Panel {
    /// The only one of a chart.
    pub fn only(series: Vec<Series>) -> Vec<Panel> {
        vec![Panel { name: String::new(), series }]
    }
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it is about, for those who cannot see it.
    pub title: String,
    /// How values are drawn.
    pub form: Form,
    /// Name and unit of the values.
    pub unit: String,
    /// Groups along the axis.
    pub groups: Vec<String>,
    /// Its parts, on one scale, below each other.
    pub panels: Vec<Panel>,
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

/// A text in lines that are no wider than a chart, as far as its words allow.
fn wrapped(text: &str) -> Vec<String> {
    let most = (WIDTH / LETTER) as usize - 4;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + word.chars().count() < most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A name of a file's legend.
struct LegendName {
    /// Where it begins.
    x: f64,
    /// The class of its colour; a line across has none.
    class: Option<String>,
    name: String,
}

/// A panel on the scale of its chart.
struct Drawing<'c> {
    chart: &'c Chart,
    panel: &'c Panel,
    /// The value at the upper edge.
    most: f64,
}

impl Drawing<'_> {
    fn y(&self, value: f64) -> f64 {
        let share = value.clamp(0.0, self.most) / self.most;
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    /// Width of a group.
    fn width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.chart.groups.len().max(1) as f64
    }

    /// What is shown of a value that is pointed at.
    fn said(&self, group: usize, series: &Series, value: f64) -> Markup {
        html! { title { (self.chart.groups[group]) ", " (series.name) ": " (number(value)) } }
    }

    fn error(&self, x: f64, Mean { value, deviation }: Mean) -> Markup {
        html! {
            @if let Some(d) = deviation {
                line class="error" x1=(x) x2=(x) y1=(self.y(value - d)) y2=(self.y(value + d)) {}
            }
        }
    }

    /// Axes, names and published values around what is drawn.
    fn frame(&self) -> Markup {
        let (chart, width, step) = (self.chart, self.width(), step(self.most));
        let ticks: Vec<f64> = (0..=20).map(|n| f64::from(n) * step).take_while(|tick| *tick <= self.most).collect();
        html! {
            @for tick in ticks {
                line class="rule" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(self.y(tick)) y2=(self.y(tick)) {}
                text x=(LEFT - 6.0) y=(self.y(tick) + 4.0) text-anchor="end" { (number(tick)) }
            }
            text class="faint" x="4" y="10" { (chart.unit) }
            text x=(WIDTH - RIGHT) y="10" text-anchor="end" { (self.panel.name) }
            @for (i, group) in chart.groups.iter().enumerate() {
                text class=(if width < NARROW { "small" } else { "" }) x=(LEFT + width * (i as f64 + 0.5)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (group) }
            }
            @match chart.form {
                Form::Bars => (self.bars()),
                Form::Lines => (self.lines()),
                Form::Stacked => (self.stacked()),
            }
            @for (name, value) in &chart.published {
                line class="mark" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(self.y(*value)) y2=(self.y(*value)) {}
                text x=(WIDTH - RIGHT) y=(self.y(*value) - 4.0) text-anchor="end" { (name) " " (number(*value)) }
            }
        }
    }

    fn bars(&self) -> Markup {
        let width = self.width();
        let bar = width * 0.82 / self.panel.series.len().max(1) as f64;
        let left = |i: usize, n: usize| LEFT + width * (i as f64 + 0.09) + bar * n as f64;
        let foot = self.y(0.0);
        html! {
            @for (n, series) in self.panel.series.iter().enumerate() {
                @for (i, mean) in series.values.iter().enumerate() {
                    @if let Some(mean) = mean {
                        rect class=(format!("s{}", n % 8)) x=(left(i, n)) width=(bar * 0.94) y=(self.y(mean.value)) height=(foot - self.y(mean.value)) {
                            (self.said(i, series, mean.value))
                        }
                        (self.error(left(i, n) + bar * 0.47, *mean))
                    }
                }
            }
        }
    }

    fn lines(&self) -> Markup {
        let x = |i: usize| LEFT + self.width() * (i as f64 + 0.5);
        let points = |series: &Series| -> Vec<(usize, Mean)> {
            series.values.iter().enumerate().filter_map(|(i, mean)| Some((i, (*mean)?))).collect()
        };
        html! {
            @for (n, series) in self.panel.series.iter().enumerate() {
                @let points = points(series);
                @let path = points.iter().map(|(i, mean)| format!("{:.1},{:.1}", x(*i), self.y(mean.value))).collect::<Vec<_>>().join(" ");
                polyline class=(format!("line l{}{}", n % 8, if series.is_limit { " limit" } else { "" })) points=(path) {}
                @for (i, mean) in points {
                    circle class=(format!("s{}", n % 8)) cx=(x(i)) cy=(self.y(mean.value)) r="3.5" {
                        (self.said(i, series, mean.value))
                    }
                    (self.error(x(i), mean))
                }
            }
        }
    }

    fn stacked(&self) -> Markup {
        let (width, series) = (self.width(), &self.panel.series);
        html! {
            @for i in 0..self.chart.groups.len() {
                @for (n, one) in series.iter().enumerate() {
                    @if let Some(Mean { value, .. }) = one.values[i] {
                        @let below = sum(&series[..n], i);
                        @let (top, foot) = (self.y(below + value.max(0.0)), self.y(below));
                        rect class=(format!("s{}", n % 8)) x=(LEFT + width * (i as f64 + 0.15)) width=(width * 0.7) y=(top) height=(foot - top) {
                            (self.said(i, one, value))
                        }
                    }
                }
            }
        }
    }
}

/// What series have in a group, on top of each other.
fn sum(series: &[Series], group: usize) -> f64 {
    series.iter().filter_map(|series| Some(series.values[group]?.value.max(0.0))).sum()
}

impl Chart {
    /// The highest value that is drawn whole, and a little.
    fn most(&self) -> f64 {
        let of = |panel: &Panel| -> f64 {
            if self.form == Form::Stacked {
                return (0..self.groups.len()).map(|group| sum(&panel.series, group)).fold(0.0, f64::max);
            }
            let values = panel.series.iter().filter(|series| !series.is_limit).flat_map(|series| &series.values);
            values.flatten().map(|mean| mean.value + mean.deviation.unwrap_or(0.0)).fold(0.0, f64::max)
        };
        let published = self.published.iter().map(|(_, value)| *value);
        self.panels.iter().map(of).chain(published).fold(1e-9, f64::max) * 1.06
    }

    /// Height of the panels together.
    fn height(&self) -> f64 {
        HEIGHT * self.panels.len() as f64
    }

    fn drawn_panels(&self) -> Markup {
        let most = self.most();
        html! {
            @for (n, panel) in self.panels.iter().enumerate() {
                g transform=(format!("translate(0 {})", HEIGHT * n as f64)) { (Drawing { chart: self, panel, most }.frame()) }
            }
        }
    }

    /// The chart as SVG, for a page that has its legend and its notes.
    pub fn drawing(&self) -> Markup {
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", self.height())) role="img" {
                title { (self.title) }
                (self.drawn_panels())
            }
        }
    }

    /// The chart as a file of its own: with a heading, its style, its legend, and notes below it,
    /// which are its description, too.
    pub fn file(&self, heading: &str, notes: &[String]) -> String {
        let legend = self.legend_lines();
        let notes_top = HEAD + self.height() + LEGEND_LINE * (legend.len() as f64 + 1.0);
        let lines: Vec<String> = notes.iter().flat_map(|note| wrapped(note)).collect();
        let height = notes_top + NOTE_LINE * (lines.len() as f64 + 0.5);
        let drawing = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) role="img" {
                title { (heading) ": " (self.title) }
                desc { (notes.join(" | ")) }
                style { (PreEscaped(STYLE)) "svg{background:var(--paper)}" }
                text x="4" y=(HEAD - 8.0) style="font-size:14px" { (heading) }
                g transform=(format!("translate(0 {HEAD})")) { (self.drawn_panels()) }
                g class="legend" transform=(format!("translate(0 {})", HEAD + self.height())) {
                    @for (line, names) in legend.iter().enumerate() {
                        @let y = LEGEND_LINE * (line as f64 + 0.7);
                        @for LegendName { x, class, name } in names {
                            @if let Some(class) = class { rect class=(class) x=(x) y=(y - 9.0) width="10" height="10" {} }
                            text x=(x + 14.0) y=(y) { (name) }
                        }
                    }
                }
                g class="notes" {
                    @for (n, line) in lines.iter().enumerate() {
                        text class="faint" x="4" y=(notes_top + NOTE_LINE * n as f64) { (line) }
                    }
                }
            }
        };
        drawing.into_string()
    }

    /// Names of all series with their colours, in lines as wide as the chart.
    fn legend_lines(&self) -> Vec<Vec<LegendName>> {
        let series = self.panels.iter().take(1).flat_map(|panel| &panel.series).enumerate();
        let coloured = series.map(|(n, series)| (Some(format!("s{}", n % 8)), series.name.clone()));
        let marked = self.published.iter().map(|(name, value)| (None, format!("- - {name} {}", number(*value))));
        let mut lines = vec![Vec::new()];
        let mut x = LEFT;
        for (class, name) in coloured.chain(marked) {
            let width = 30.0 + LETTER * name.chars().count() as f64;
            if x + width > WIDTH && x > LEFT {
                lines.push(Vec::new());
                x = LEFT;
            }
            lines.last_mut().expect("there is a line").push(LegendName { x, class, name });
            x += width;
        }
        lines
    }

    /// Which colour is what.
    pub fn legend(&self) -> Markup {
        html! {
            p class="legend" {
                @for (n, series) in self.panels.iter().take(1).flat_map(|panel| &panel.series).enumerate() {
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
            None => MISSING.to_owned(),
            Some(Mean { value, deviation: None }) => number(*value),
            Some(Mean { value, deviation: Some(d) }) => format!("{} ± {}", number(*value), number(*d)),
        };
        html! {
            details {
                summary { "values (" (self.unit) ")" }
                div class="wide" {
                    table {
                        tr { th {} @for group in &self.groups { th { (group) } } }
                        @for panel in &self.panels {
                            @for series in &panel.series {
                                tr { th { (series.name) @if !panel.name.is_empty() { ", " (panel.name) } } @for mean in &series.values { td { (cell(mean)) } } }
                            }
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
    fn a_limit_ends_at_the_edge_of_a_chart_and_is_whole_in_the_table() {
        let series = |name: &str, value| Series::new(name, vec![Some(Mean { value, deviation: None })]);
        let chart = Chart {
            title: "speed-up".into(),
            form: Form::Bars,
            unit: "times".into(),
            groups: vec!["btree".into()],
            panels: vec![
                Panel { name: "one".into(), series: vec![series("card", 2.0), series("most", 84.0).into_limit()] },
                Panel { name: "two".into(), series: vec![series("card", 4.0), series("most", 40.0).into_limit()] },
            ],
            published: Vec::new(),
        };
        assert!((chart.most() - 4.24).abs() < 1e-9);
        let edge = format!("y=\"{TOP}\" height=\"{}\"", HEIGHT - TOP - BOTTOM);
        assert_eq!(chart.drawing().into_string().matches(&edge).count(), 2);
        let table = chart.table().into_string();
        assert!(table.contains("84.0") && table.contains("most, two"), "{table}");
    }

    #[test]
    fn a_file_has_the_legend_and_the_notes_that_a_page_has_around_its_chart() {
        let names =
            ["one device", "two devices, software sync", "two devices, delayed sync", "CPU, best path", "a & b < c"];
        let series = names.map(|name| Series::new(name, vec![Some(Mean { value: 2.0, deviation: None })]));
        let chart = Chart {
            title: "speed-up".into(),
            form: Form::Bars,
            unit: "times".into(),
            groups: vec!["btree".into()],
            panels: Panel::only(series.to_vec()),
            published: vec![("paper, average".into(), 1.5)],
        };
        let notes =
            ["origin: simulated ".to_owned() + &"word ".repeat(60), "command: nearpm bench && nearpm report".into()];
        let file = chart.file("Fig. 0", &notes);
        let parsed = roxmltree::Document::parse(&file).expect("it is XML");
        let texts = |class: &str| -> Vec<String> {
            let group = parsed.descendants().find(|n| n.attribute("class") == Some(class)).expect("the group is there");
            group.descendants().filter(|n| n.has_tag_name("text")).map(|n| n.text().unwrap_or("").to_owned()).collect()
        };
        assert_eq!(texts("legend"), [&names[..], &["- - paper, average 1.50"]].concat());
        assert!(texts("notes").iter().all(|line| line.chars().count() <= 126), "{file}");
        assert_eq!(texts("notes").join(" "), notes.join(" ").split_whitespace().collect::<Vec<_>>().join(" "));
        let view = parsed.root_element().attribute("viewBox").expect("it has a size");
        let bottom: f64 = view.rsplit(' ').next().unwrap().parse().unwrap();
        let lowest = parsed.descendants().filter_map(|n| n.attribute("y")?.parse::<f64>().ok()).fold(0.0, f64::max);
        assert!(lowest < bottom && lowest > HEIGHT, "{lowest} of {bottom}");
        let desc =
            parsed.descendants().find(|n| n.has_tag_name("desc")).and_then(|n| n.text()).expect("it is described");
        assert!(desc.contains(&notes[1]), "{desc}");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(step(10.0), 2.0);
        assert_eq!(step(2.2), 0.5);
        assert_eq!(step(97.0), 20.0);
    }
}
