//! A figure as SVG: complementary distributions, or lines over a parameter; both axes logarithmic.
#![forbid(unsafe_code)]

use super::plan::{Figure, Kind, Point};
use plotters::prelude::*;
use std::ops::Range;
use std::path::Path;
use workloads::{Metric, Report, Unit};

/// Okabe and Ito's colours, without the yellow that is faint on white: they differ for nearly all eyes. Each has a
/// marker, too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// A curve has about so many markers.
const MARKERS: usize = 12;

type Curve = Vec<(f64, f64)>;

pub fn draw(figure: &Figure, found: &[(&Point, Report)], out: &Path) -> Result<(), String> {
    let (series, x, y) = match &figure.kind {
        Kind::Table => return Ok(()),
        Kind::Curves { distribution } => {
            let curve = |(point, report): &(&Point, Report)| {
                let points = report.distributions.get(*distribution).cloned().unwrap_or_default();
                // What nothing exceeds has no place on a logarithmic axis.
                let points: Curve = points.into_iter().filter(|point| point.1 > 0.0).collect();
                (point.series.clone(), points)
            };
            let series: Vec<_> = found.iter().map(curve).collect();
            (series, ("latency", Unit::Nanoseconds), ("part of all that took longer", Unit::Count))
        }
        Kind::Lines { x, y, metrics } => {
            let mut series: Vec<(String, Curve)> = Vec::new();
            let mut unit = Unit::Count;
            for (point, report) in found {
                for metric in metrics.iter().filter_map(|name| report.get(name)) {
                    unit = metric.unit;
                    let name = match metrics.len() {
                        1 => point.series.clone(),
                        _ if point.series.is_empty() => metric.name.clone(),
                        _ => format!("{}, {}", point.series, metric.name),
                    };
                    match series.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, curve)) => curve.push((point.x, metric.value)),
                        None => series.push((name, vec![(point.x, metric.value)])),
                    }
                }
            }
            (series, (*x, Unit::Count), (*y, unit))
        }
    };
    let path = out.join(format!("{}.svg", figure.name));
    chart(&path, &figure.title, &series, x, y).map_err(|error| format!("{}: {error}", path.display()))
}

/// From a little below the least to a little above the greatest.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { 0.5..2.0 } else { low / 1.3..high * 1.3 }
}

fn short(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value >= 1e6 => format!("{}M", value / 1e6),
        Unit::Count if value >= 1e4 => format!("{}k", value / 1e3),
        Unit::Count if value < 0.01 => format!("{value:.0e}"),
        _ => Metric { name: String::new(), value, unit }.show(),
    }
}

fn chart(
    path: &Path,
    title: &str,
    series: &[(String, Curve)],
    (x_label, x_unit): (&str, Unit),
    (y_label, y_unit): (&str, Unit),
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let points = || series.iter().flat_map(|(_, curve)| curve);
    let (x, y) = (range(points().map(|point| point.0)), range(points().map(|point| point.1)));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(88)
        .build_cartesian_2d(x.log_scale(), y.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(x_label)
        .y_desc(y_label)
        .x_label_formatter(&|value| short(*value, x_unit))
        .y_label_formatter(&|value| short(*value, y_unit))
        .draw()?;
    for (index, (name, curve)) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line = LineSeries::new(curve.iter().copied(), colour.stroke_width(2));
        chart.draw_series(line)?.label(name.clone()).legend(move |(x, y)| marker(index, (x + 12, y)));
        let every = curve.len().div_ceil(MARKERS).max(1);
        let marked = curve.iter().skip(index % every).step_by(every);
        chart.draw_series(marked.map(|point| EmptyElement::at(*point) + marker(index, (0, 0))))?;
    }
    // Distributions leave the lower left free.
    let curves = y_unit == Unit::Count;
    let place = if curves { SeriesLabelPosition::LowerLeft } else { SeriesLabelPosition::MiddleRight };
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}

/// One of four shapes, filled or open.
fn marker<'a>(index: usize, at: (i32, i32)) -> DynElement<'static, SVGBackend<'a>, (i32, i32)> {
    let colour = COLOURS[index % COLOURS.len()];
    let style = if index % 8 < 4 { colour.filled() } else { colour.stroke_width(1) };
    match index % 4 {
        0 => Circle::new(at, 4, style).into_dyn(),
        1 => TriangleMarker::new(at, 5, style).into_dyn(),
        2 => Rectangle::new([(at.0 - 4, at.1 - 4), (at.0 + 4, at.1 + 4)], style).into_dyn(),
        _ => Cross::new(at, 4, colour.stroke_width(2)).into_dyn(),
    }
}
