//! TPC-C's new_order: a district, an order, a new order, and five to fifteen rows of stock.
//!
//! One warehouse. Items' prices and the customer's discount are read. The rows that change are
//! declared whole, as the paper's code does: 128 + 64 + 64 and on average 10 x 320 bytes, in about
//! 13 ranges.

use nearpm::Error;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::rows::{Table, set_word, word};
use super::{Inputs, Rows, Setup, Workload};
use crate::map::Fault;
use crate::store::{Store, Transaction};

const DISTRICTS: usize = 10;
const ITEMS: usize = 10_000;
const CUSTOMERS_PER_DISTRICT: usize = 3_000;
/// Of a district: the number of its next order. Of stock: the quantity, what was sold, the orders.
const COUNTER: usize = 8;
const SOLD: usize = 16;
const ORDERS: usize = 24;

/// An order.
struct Order {
    district: usize,
    customer: usize,
    /// Items and quantities; each item once.
    lines: Vec<(usize, u64)>,
}

/// The tables, in the order of their offsets in the root object.
struct Tables {
    districts: Table,
    orders: Table,
    new_orders: Table,
    stock: Table,
    items: Table,
    customers: Table,
}

impl Tables {
    fn all(&self) -> [&Table; 6] {
        [&self.districts, &self.orders, &self.new_orders, &self.stock, &self.items, &self.customers]
    }
}

/// The program.
pub struct Tpcc {
    tables: Tables,
    orders: Vec<Order>,
}

impl Tpcc {
    pub fn new(setup: Setup) -> Self {
        let populated = setup.inputs == Inputs::Corrected;
        let items = setup.rows(ITEMS, 64, 16);
        let customers = setup.rows(CUSTOMERS_PER_DISTRICT, 16, 1);
        let table = |number, row_bytes, rows| Table { number, row_bytes, rows, populated };
        let empty = |number, row_bytes, rows| Table { populated: false, ..table(number, row_bytes, rows) };
        let tables = Tables {
            districts: table(0, 128, DISTRICTS),
            orders: empty(1, 64, setup.count.max(1)),
            new_orders: empty(2, 64, setup.count.max(1)),
            stock: table(3, 320, items),
            items: table(4, 64, items),
            customers: table(5, 64, DISTRICTS * customers),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(setup.seed);
        let orders = (0..setup.count)
            .map(|_| {
                let district = rng.random_range(0..DISTRICTS);
                let customer = district * customers + rng.random_range(0..customers);
                let mut lines: Vec<(usize, u64)> = Vec::new();
                for _ in 0..rng.random_range(5..=15) {
                    let item = rng.random_range(0..items);
                    if lines.iter().all(|(ordered, _)| *ordered != item) {
                        lines.push((item, rng.random_range(1..=10)));
                    }
                }
                Order { district, customer, lines }
            })
            .collect();
        Tpcc { tables, orders }
    }

    /// What the transaction writes: the new rows.
    fn new_rows(&self, number: usize, order_number: u64) -> ([u8; 64], [u8; 64]) {
        let Order { district, customer, lines } = &self.orders[number];
        let (mut order, mut new_order) = ([0; 64], [0; 64]);
        for row in [&mut order, &mut new_order] {
            set_word(row, 0, order_number);
            set_word(row, 8, *district as u64 + 1);
        }
        set_word(&mut order, 16, *customer as u64);
        set_word(&mut order, 24, lines.len() as u64);
        (order, new_order)
    }

    /// A row of stock after a line: the quantity is filled up below 10, as TPC-C 2.4.2.2 says.
    fn take(stock: &mut [u8], quantity: u64) {
        let left = word(stock, COUNTER);
        let left = if left >= quantity + 10 { left - quantity } else { left + 91 - quantity };
        set_word(stock, COUNTER, left);
        let (sold, orders) = (word(stock, SOLD).wrapping_add(quantity), word(stock, ORDERS).wrapping_add(1));
        set_word(stock, SOLD, sold);
        set_word(stock, ORDERS, orders);
    }
}

impl Workload for Tpcc {
    fn count(&self) -> usize {
        self.orders.len()
    }

    fn bytes(&self) -> u64 {
        self.tables.all().iter().map(|table| table.bytes() + (32 << 10)).sum()
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        let mut head = Vec::new();
        for table in self.tables.all() {
            head.extend(table.create(store)?.to_le_bytes());
        }
        store.transaction(&mut |tx| {
            let root = tx.alloc(64)?;
            tx.write(root, &head)?;
            tx.set_root(root)
        })
    }

    fn initial(&self) -> Rows {
        let mut rows = Rows::new();
        self.tables.all().iter().for_each(|table| table.initial(&mut rows));
        rows
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        let Order { district, customer, lines } = &self.orders[number];
        let mut bases = [0; 6];
        for (i, base) in bases.iter_mut().enumerate() {
            *base = tx.read_u64(root + 8 * i as u64)?;
        }
        let [districts, orders, new_orders, stock, items, customers] = bases;
        let tables = &self.tables;
        tx.read_u64(tables.customers.at(customers, *customer))?;
        let district = tables.districts.at(districts, *district);
        let order_number = tx.read_u64(district + COUNTER as u64)?;
        tx.declare(district, tables.districts.row_bytes as u64)?;
        tx.write_u64(district + COUNTER as u64, order_number + 1)?;
        let (order, new_order) = self.new_rows(number, order_number);
        tx.write(tables.orders.at(orders, number), &order)?;
        tx.write(tables.new_orders.at(new_orders, number), &new_order)?;
        for (item, quantity) in lines {
            tx.read_u64(tables.items.at(items, *item))?;
            let at = tables.stock.at(stock, *item);
            tx.declare(at, tables.stock.row_bytes as u64)?;
            let mut row = [0; ORDERS + 8];
            tx.read(at, &mut row)?;
            Tpcc::take(&mut row, *quantity);
            tx.write(at + COUNTER as u64, &row[COUNTER..])?;
        }
        Ok(())
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        let Order { district, lines, .. } = &self.orders[number];
        let tables = &self.tables;
        let district = rows.get_mut(&tables.districts.key(*district)).expect("a district");
        let order_number = word(district, COUNTER);
        set_word(district, COUNTER, order_number + 1);
        let (order, new_order) = self.new_rows(number, order_number);
        rows.insert(tables.orders.key(number), order.to_vec());
        rows.insert(tables.new_orders.key(number), new_order.to_vec());
        for (item, quantity) in lines {
            Tpcc::take(rows.get_mut(&tables.stock.key(*item)).expect("stock"), *quantity);
        }
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let mut rows = Rows::new();
        for (i, table) in self.tables.all().into_iter().enumerate() {
            let base = tx.read_u64(root + 8 * i as u64)?;
            table.contents(tx, base, &mut rows)?;
        }
        Ok(rows)
    }
}
