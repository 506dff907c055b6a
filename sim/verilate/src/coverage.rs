//! What a design that counts its coverage has beyond the others.
//!
//! Verilator names each point of coverage in each model that is made, which takes most of a second
//! for a whole card, and writes names and counts as one text. Here a model only counts. What its
//! library has hit goes as numbers to `PATH-PROCESS.hits`, and the names once to `PATH.points`.

use crate::Error;
use crate::error::IoContext;
use std::path::Path;

/// What follows the shim's head.
pub(crate) const SHIM: &str = r#"
#include "Vtop__Syms.h"
#include <cstdio>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
FILE* nearpm_points = nullptr;
namespace {
using Counters = decltype(Vtop__Syms::__Vcoverage);
constexpr size_t POINTS = sizeof(Counters) / sizeof(uint32_t);
// How many models have hit each counter, in memory that copies of the process by fork share: they count too. Written by the process that
// loaded the library, when it unloads the library or ends; a copy ends without its exit handlers.
struct Coverage {
    std::mutex mutex;
    std::string path;
    uint32_t* hit = nullptr;
    void begin(const char* where) {
        std::lock_guard<std::mutex> lock{mutex};
        path = where;
        if (hit) return;
        void* shared = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared != MAP_FAILED) hit = static_cast<uint32_t*>(shared);
        name();
    }
    // Names the points, where no process has done so.
    void name() {
        const std::string named = path + ".points", scratch = named + "-" + std::to_string(getpid());
        if (access(named.c_str(), F_OK) == 0) return;
        nearpm_points = std::fopen(scratch.c_str(), "w");
        if (!nearpm_points) return;
        { VerilatedContext context; Vtop model{&context, "top"}; }
        const bool whole = std::fclose(nearpm_points) == 0;
        nearpm_points = nullptr;
        if (whole) std::rename(scratch.c_str(), named.c_str()); else std::remove(scratch.c_str());
    }
    void take(Model* m) {
        std::lock_guard<std::mutex> lock{mutex};
        m->top->final();
        const Counters& own = m->top->rootp->vlSymsp->__Vcoverage;
        for (size_t i = 0; hit && i < POINTS; ++i)
            if (own[i]) __atomic_fetch_add(&hit[i], 1, __ATOMIC_RELAXED);
        delete m;
    }
    ~Coverage() {
        if (!hit) return;
        FILE* file = std::fopen((path + "-" + std::to_string(getpid()) + ".hits").c_str(), "w");
        if (!file) return;
        std::fwrite(hit, sizeof(uint32_t), POINTS, file);
        std::fclose(file);
    }
};
Coverage coverage;
}
EXPORT void nearpm_delete_counted(Model* m) { coverage.take(m); }
EXPORT void nearpm_coverage(const char* path) { coverage.begin(path); }
"#;

/// File of Verilator's in which a model registers its points.
const REGISTERS: &str = "Vtop___024root__Slow.cpp";

/// In front of it: each point goes to the file that is open, as number of its counter, line, page
/// and comment, apart by tabulators.
pub(crate) const HEAD: &str = r#"#include <cstdio>
#include <cstring>
extern FILE* nearpm_points;
static void nearpm_point(long counter, const char*, const char*, const char*, const char*, int line, const char*, int, const char*, const char*,
    const char*, const char* page, const char*, const char* comment, ...) { std::fprintf(nearpm_points, "%ld\t%d\t%s\t%s\n", counter, line, page, comment); }
#undef VL_COVER_INSERT
#define VL_COVER_INSERT(context, name, count, ...) nearpm_point(count - vlSymsp->__Vcoverage, name, __VA_ARGS__)
"#;

/// Makes the models of the code in a folder name their points only while a file for them is open.
///
/// # Errors
/// The code is not as this version of Verilator writes it.
pub(crate) fn name_once(folder: &Path) -> Result<(), Error> {
    let path = folder.join(REGISTERS);
    let text = std::fs::read_to_string(&path).context("read", &path)?;
    let (include, call) = ("#include \"Vtop__pch.h\"\n", "    Vtop___024root___configure_coverage(this, first);\n");
    if text.matches(include).count() != 1 || text.matches(call).count() != 1 {
        return Err(Error::Coverage { path });
    }
    let cleared = "    else std::memset(vlSymsp->__Vcoverage, 0, sizeof vlSymsp->__Vcoverage);\n";
    let text = text.replace(include, &format!("{include}{HEAD}"));
    let text = text.replace(call, &format!("    if (nearpm_points)\n{call}{cleared}"));
    std::fs::write(&path, text).context("write", &path)
}
