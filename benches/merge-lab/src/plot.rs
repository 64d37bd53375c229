//! Plots as SVG: lines with marks, on plain or logarithmic axes, in the colours of Okabe and Ito, which most people who see
//! few colours tell apart; marks and dashes tell lines apart without any.
#![forbid(unsafe_code)]

use crate::summary::show;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;
use workloads::Unit;

const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(240, 228, 66),
];
/// Corners of the marks; the first is about a circle.
const MARKS: [&[(i32, i32)]; 6] = [
    &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(0, 5), (5, -4), (-5, -4)],
    &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
];
/// Marks on a line, at most about.
const MARKED: usize = 9;
const SIZE: (u32, u32) = (640, 400);

/// An axis.
#[derive(Clone, Copy)]
pub struct Axis {
    /// What it shows.
    pub label: &'static str,
    /// In which unit.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// A line, or, if it has one point only, a mark.
pub struct Line {
    /// Its colour and mark.
    pub style: usize,
    /// 0: whole; more: dashed, the shorter the more.
    pub dash: usize,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
pub struct Plot {
    /// Above it.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is in it.
    pub lines: Vec<Line>,
}

fn colour(style: usize) -> RGBColor {
    COLOURS[style % COLOURS.len()]
}

/// The mark's corners. Beyond as many as there are colours, colour and mark go apart.
fn corners(style: usize) -> &'static [(i32, i32)] {
    MARKS[(style + style / COLOURS.len()) % MARKS.len()]
}

/// The range of an axis, with some room; of a logarithmic one, whole decades.
fn range(values: impl Iterator<Item = f64>, log: bool) -> Range<f64> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
    if log {
        let (low, high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
        low..if high > low { high } else { low * 10.0 }
    } else {
        let low = low.min(0.0);
        low..if high > low { low + 1.05 * (high - low) } else { low + 1.0 }
    }
}

macro_rules! draw_on {
    ($root:expr, $plot:expr, $x:expr, $y:expr) => {{
        let Plot { title, x, y, lines } = $plot;
        let mut chart = ChartBuilder::on($root)
            .caption(title, ("sans-serif", 15))
            .margin(10)
            .margin_right(28)
            .x_label_area_size(42)
            .y_label_area_size(76)
            .build_cartesian_2d($x, $y)?;
        let (x_unit, y_unit) = (x.unit, y.unit);
        chart
            .configure_mesh()
            .x_desc(x.label)
            .y_desc(y.label)
            .x_label_formatter(&|value: &f64| short(*value, x_unit))
            .y_label_formatter(&|value: &f64| short(*value, y_unit))
            .light_line_style(WHITE)
            .draw()?;
        for line in lines {
            let stroke = colour(line.style).stroke_width(2);
            let points = line.points.iter().copied();
            match line.dash {
                0 => chart.draw_series(LineSeries::new(points, stroke))?,
                dash => chart.draw_series(DashedLineSeries::new(points, 9 / dash as u32, 4, stroke))?,
            };
            let every = line.points.len().div_ceil(MARKED).max(1);
            let mark = |at: &(f64, f64)| {
                EmptyElement::at(*at) + Polygon::new(corners(line.style), colour(line.style).filled())
            };
            chart.draw_series(line.points.iter().step_by(every).map(mark))?;
        }
    }};
}

/// A number at an axis: parts below one are written out.
fn short(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value < 10_000.0 => format!("{value}"),
        Unit::Count => format!("{value:.0e}"),
        unit => show(value, unit),
    }
}

/// The plot as an SVG element.
///
/// # Errors
/// What the drawing says.
pub fn draw(plot: &Plot) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let points = || plot.lines.iter().flat_map(|line| line.points.iter());
        let x = range(points().map(|point| point.0), plot.x.log);
        let y = range(points().map(|point| point.1), plot.y.log);
        match (plot.x.log, plot.y.log) {
            (true, true) => draw_on!(&root, plot, x.log_scale(), y.log_scale()),
            (true, false) => draw_on!(&root, plot, x.log_scale(), y),
            (false, true) => draw_on!(&root, plot, x, y.log_scale()),
            (false, false) => draw_on!(&root, plot, x, y),
        }
        root.present()?;
    }
    Ok(text)
}

/// What styles and dashes mean, as an SVG element.
///
/// # Errors
/// What the drawing says.
pub fn legend(entries: &[(usize, usize, String)]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let rows = entries.len().div_ceil(3).max(1) as i32;
        let root = SVGBackend::with_string(&mut text, (960, 24 * rows as u32 + 8)).into_drawing_area();
        root.fill(&WHITE)?;
        for (index, (style, dash, name)) in entries.iter().enumerate() {
            let (x, y) = (10 + 320 * (index as i32 / rows), 16 + 24 * (index as i32 % rows));
            entry(&root, (x, y), *style, *dash, name)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn entry(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    (x, y): (i32, i32),
    style: usize,
    dash: usize,
    name: &str,
) -> Result<(), Box<dyn Error>> {
    let stroke = colour(style).stroke_width(2);
    let step = if dash == 0 { 40 } else { 9 / dash as i32 + 4 };
    for from in (0..40).step_by(step as usize) {
        let to = if dash == 0 { 40 } else { (from + 9 / dash as i32).min(40) };
        root.draw(&PathElement::new(vec![(x + from, y), (x + to, y)], stroke))?;
    }
    let corners: Vec<_> = corners(style).iter().map(|(dx, dy)| (x + 20 + dx, y + dy)).collect();
    root.draw(&Polygon::new(corners, colour(style).filled()))?;
    root.draw(&Text::new(name.to_string(), (x + 48, y - 7), ("sans-serif", 14)))?;
    Ok(())
}
