//! A mesh of tetrahedra around a body: what CFD computes on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::unit;

/// Faces of a cell.
pub const FACES: usize = 4;
/// Tetrahedra of a cube.
const OF_A_CUBE: u32 = 6;
/// Neighbours that are none, as in `cfd.cu`.
pub const BODY: i32 = -1;
/// The gas far away.
pub const FAR: i32 = -2;

/// A mesh by columns: face f of cell c has number `f * cells + c`; its vector's axis a
/// `(3 * f + a) * cells + c`.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    /// Cells.
    pub cells: u32,
    /// The cell at the other side of each face, [`BODY`] or [`FAR`].
    pub neighbours: Vec<i32>,
    /// Area vectors of the faces, which point inward.
    pub normals: Vec<f32>,
    /// Area of each cell's faces.
    pub surface: Vec<f32>,
}

type Point = [f64; 3];

/// Cubes of a grid of `side` to the third, without those that lie nearest to a rod in its middle.
fn cubes_of(side: u32, count: usize) -> Vec<[u32; 3]> {
    let middle = f64::from(side) / 2.0 - 0.5;
    let from_rod = |cube: &[u32; 3]| {
        let [x, y, z] = cube.map(|at| (f64::from(at) - middle).abs());
        // Eight times as long as it is wide.
        (x / 8.0).max(y.hypot(z))
    };
    let all = (0..side.pow(3)).map(|n| [n % side, n / side % side, n / side / side]);
    let mut cubes: Vec<[u32; 3]> = all.collect();
    cubes.sort_by(|a, b| from_rod(b).total_cmp(&from_rod(a)));
    cubes.truncate(count);
    cubes
}

/// The corners of a cube's tetrahedra: along its edges from the lowest corner to the highest, by
/// each order of the axes.
fn tetrahedra_of(cube: [u32; 3]) -> [[[u32; 3]; FACES]; OF_A_CUBE as usize] {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    orders.map(|order| {
        let mut corners = [cube; FACES];
        for (step, &axis) in order.iter().enumerate() {
            corners[step + 1] = corners[step];
            corners[step + 1][axis] += 1;
        }
        corners
    })
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The area vector of the face of a cell that lies opposite of a corner; it points to the corner.
fn inward(corners: [Point; FACES], opposite: usize) -> Point {
    let on = |n: usize| corners[(opposite + n) % FACES];
    let area = cross(minus(on(2), on(1)), minus(on(3), on(1))).map(|axis| axis / 2.0);
    let towards = dot(area, minus(corners[opposite], on(1)));
    if towards < 0.0 { area.map(|axis| -axis) } else { area }
}

impl Mesh {
    /// A mesh of `cells` cells, a multiple of 6, around a rod: like that around a missile, its
    /// corners are no grid's, and its cells are numbered in no order. It depends on nothing but its
    /// arguments.
    ///
    /// # Panics
    /// Another number of cells.
    pub fn around_a_rod(cells: u32) -> Mesh {
        assert!(cells > 0 && cells.is_multiple_of(OF_A_CUBE), "a mesh has a multiple of 6 cells, not {cells}");
        let count = (cells / OF_A_CUBE) as usize;
        let side = (1..).find(|side: &u32| side.pow(3) as usize > count).expect("a cube is large enough");
        let mut tetrahedra: Vec<_> = cubes_of(side, count).into_iter().flat_map(tetrahedra_of).collect();
        for i in (1..tetrahedra.len()).rev() {
            tetrahedra.swap(i, crate::pattern::pattern(i as u32, 4) as usize % (i + 1));
        }
        // Corners in the grid are moved by up to an eighth of an edge.
        let number = |at: [u32; 3]| (at[0] + (side + 1) * (at[1] + (side + 1) * at[2])) as usize;
        let moved = |corner: [u32; 3], axis: usize| {
            f64::from(corner[axis]) + 0.25 * (f64::from(unit(number(corner), axis as u32)) - 0.5)
        };
        let point = |corner: [u32; 3]| [0, 1, 2].map(|axis| moved(corner, axis));
        let (cells, stride) = (tetrahedra.len(), tetrahedra.len());
        let (mut normals, mut surface) = (vec![0.0; 3 * FACES * cells], vec![0.0; cells]);
        let mut neighbours = vec![BODY; FACES * cells];
        let mut open = HashMap::new();
        for (cell, &corners) in tetrahedra.iter().enumerate() {
            let points = corners.map(point);
            for face in 0..FACES {
                let vector = inward(points, face);
                for (axis, &part) in vector.iter().enumerate() {
                    normals[(3 * face + axis) * stride + cell] = part as f32;
                }
                surface[cell] += dot(vector, vector).sqrt() as f32;
                let mut key: Vec<usize> = (1..FACES).map(|n| number(corners[(face + n) % FACES])).collect();
                key.sort_unstable();
                let place = face * stride + cell;
                match open.entry(key) {
                    Entry::Occupied(other) => {
                        let other = other.remove();
                        (neighbours[place], neighbours[other]) = ((other % stride) as i32, cell as i32);
                    }
                    Entry::Vacant(free) => {
                        free.insert(place);
                    }
                }
                let outside = |axis: usize| {
                    let mut on = (1..FACES).map(|n| corners[(face + n) % FACES][axis]);
                    let first = on.next().unwrap_or(1);
                    (first == 0 || first == side) && on.all(|at| at == first)
                };
                if neighbours[place] < 0 && (0..3).any(outside) {
                    neighbours[place] = FAR;
                }
            }
        }
        Mesh { cells: cells as u32, neighbours, normals, surface }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_closed_and_neighbours_agree() {
        for cells in [42, 156, 6 * 500] {
            let mesh = Mesh::around_a_rod(cells);
            let n = cells as usize;
            let normal = |face: usize, cell: usize| [0, 1, 2].map(|axis| mesh.normals[(3 * face + axis) * n + cell]);
            let (mut bodies, mut fars) = (0, 0);
            for cell in 0..n {
                let sum =
                    (0..FACES).map(|face| normal(face, cell)).fold([0.0; 3], |s, v| [0, 1, 2].map(|a| s[a] + v[a]));
                assert!(sum.iter().all(|axis| axis.abs() < 1e-5), "cell {cell}: its faces leave {sum:?} open");
                for face in 0..FACES {
                    let other = mesh.neighbours[face * n + cell];
                    bodies += u32::from(other == BODY);
                    fars += u32::from(other == FAR);
                    if other >= 0 {
                        let other = other as usize;
                        let back = (0..FACES).find(|&face| mesh.neighbours[face * n + other] == cell as i32).unwrap();
                        let (here, there) = (normal(face, cell), normal(back, other));
                        assert!((0..3).all(|axis| (here[axis] + there[axis]).abs() < 1e-5));
                    }
                }
            }
            assert!(bodies > 0 && fars > 0, "{bodies} faces of the body, {fars} far away");
        }
    }
}
