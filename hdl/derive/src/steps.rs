//! [`steps`](macro@crate::steps): a kernel that is written as methods.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::{VisitMut, visit_block_mut, visit_expr_mut};
use syn::{Block, Error, Expr, ExprBlock, Ident, ImplItem, ImplItemFn, ItemImpl, ReturnType, Stmt, parse_quote};

/// The kernel, and the method of the trait beside it that has the form of a step.
const KERNEL: &str = "update";
const OF_THE_TRAIT: &str = "connect";

/// The block with `update` alone, every step in its place.
pub fn joined(mut item: ItemImpl) -> syn::Result<TokenStream> {
    let mut steps = BTreeMap::new();
    let mut others = Vec::new();
    for member in item.items {
        match member {
            ImplItem::Fn(method) if is_step(&method) => {
                steps.insert(method.sig.ident.clone(), method.block);
            }
            other => others.push(other),
        }
    }
    let mut joiner = Joiner { steps, open: Vec::new(), used: BTreeSet::new(), error: None };
    for member in &mut others {
        if let ImplItem::Fn(method) = member
            && method.sig.ident == KERNEL
        {
            joiner.visit_block_mut(&mut method.block);
            method.attrs.push(parse_quote!(#[hdl_gen]));
        }
    }
    if let Some(error) = joiner.error {
        return Err(error);
    }
    if let Some(unused) = joiner.steps.keys().find(|name| !joiner.used.contains(*name)) {
        return Err(Error::new(unused.span(), "nobody takes this step"));
    }
    item.items = others;
    Ok(item.into_token_stream())
}

/// A method of `&mut self` alone, which returns nothing.
fn is_step(method: &ImplItemFn) -> bool {
    let name = &method.sig.ident;
    let takes_self = method.sig.receiver().is_some_and(|receiver| receiver.mutability.is_some());
    let alone = method.sig.inputs.len() == 1 && matches!(method.sig.output, ReturnType::Default);
    name != KERNEL && name != OF_THE_TRAIT && takes_self && alone
}

struct Joiner {
    steps: BTreeMap<Ident, Block>,
    /// Steps that are being put in their places, outermost first.
    open: Vec<Ident>,
    used: BTreeSet<Ident>,
    error: Option<Error>,
}

impl Joiner {
    /// What `self.name()` stands for, where it is a step.
    fn step(&mut self, expression: &Expr) -> Option<Block> {
        let Expr::MethodCall(call) = expression else { return None };
        let of_self = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
        let mut block = self.steps.get(&call.method).filter(|_| of_self && call.args.is_empty())?.clone();
        if self.open.contains(&call.method) {
            self.error = Some(Error::new(call.method.span(), "a step that takes itself has no end"));
            return None;
        }
        self.used.insert(call.method.clone());
        self.open.push(call.method.clone());
        self.visit_block_mut(&mut block);
        self.open.pop();
        Some(block)
    }
}

impl VisitMut for Joiner {
    /// A step among others: its statements.
    fn visit_block_mut(&mut self, block: &mut Block) {
        let mut joined = Vec::new();
        for statement in std::mem::take(&mut block.stmts) {
            let step = match &statement {
                Stmt::Expr(expression, _) => self.step(expression),
                _ => None,
            };
            match step {
                Some(step) => joined.extend(step.stmts),
                None => joined.push(statement),
            }
        }
        block.stmts = joined;
        visit_block_mut(self, block);
    }

    /// A step as the arm of a `match`: its block.
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        match self.step(expression) {
            Some(block) => *expression = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block }),
            None => visit_expr_mut(self, expression),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(item: ItemImpl) -> String {
        joined(item).expect("steps that can be joined").to_string()
    }

    fn error(item: ItemImpl) -> String {
        joined(item).expect_err("steps that cannot be joined").to_string()
    }

    #[test]
    fn a_step_becomes_its_statements_and_in_a_match_its_block() {
        let in_steps: ItemImpl = parse_quote! {
            impl Logic for Unit {
                fn update(&mut self) {
                    self.a.next = 1;
                    self.outputs();
                    match self.phase.q.val() {
                        Phase::Idle => self.idle(),
                        _ => {}
                    }
                }
                fn outputs(&mut self) {
                    self.b.next = 2;
                    self.more();
                }
                fn more(&mut self) {
                    self.c.next = 3;
                }
                fn idle(&mut self) {
                    self.d.next = 4;
                }
                fn connect(&mut self) {
                    self.d.connect();
                }
            }
        };
        let at_once: ItemImpl = parse_quote! {
            impl Logic for Unit {
                #[hdl_gen]
                fn update(&mut self) {
                    self.a.next = 1;
                    self.b.next = 2;
                    self.c.next = 3;
                    match self.phase.q.val() {
                        Phase::Idle => { self.d.next = 4; },
                        _ => {}
                    }
                }
                fn connect(&mut self) {
                    self.d.connect();
                }
            }
        };
        assert_eq!(text(in_steps), at_once.to_token_stream().to_string());
    }

    #[test]
    fn a_step_that_nobody_takes_or_that_takes_itself_is_an_error() {
        let unused = parse_quote!(impl Logic for Unit { fn update(&mut self) {} fn step(&mut self) {} });
        assert_eq!(error(unused), "nobody takes this step");
        let endless = parse_quote!(impl Logic for Unit { fn update(&mut self) { self.step(); } fn step(&mut self) { self.step(); } });
        assert_eq!(error(endless), "a step that takes itself has no end");
    }
}
