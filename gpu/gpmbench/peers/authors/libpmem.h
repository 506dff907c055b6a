// What GPM's programs call of libpmem, on memfds: memory of the kind that our regions are in. A
// name that was mapped before is the same memory again.
#pragma once
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#define PMEM_FILE_CREATE 1

inline std::map<std::string, std::pair<int, size_t>> &pmem_files() {
    static std::map<std::string, std::pair<int, size_t>> files;
    return files;
}

inline void *pmem_map_file(const char *path, size_t bytes, int flags, unsigned, size_t *mapped, int *is_pmem) {
    auto &files = pmem_files();
    if (!files.count(path)) {
        if (!(flags & PMEM_FILE_CREATE)) return errno = ENOENT, nullptr;
        int file = memfd_create("pmem", 0);
        if (file < 0 || ftruncate(file, bytes)) return nullptr;
        files[path] = {file, bytes};
    }
    auto [file, has] = files[path];
    if (flags & PMEM_FILE_CREATE && bytes != has) {
        if (ftruncate(file, bytes)) return nullptr;
        files[path].second = has = bytes;
    }
    void *all = mmap(nullptr, has, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED) return nullptr;
    if (mapped) *mapped = has;
    if (is_pmem) *is_pmem = 1;
    return all;
}

inline int pmem_unmap(void *all, size_t bytes) { return munmap(all, bytes); }
inline int pmem_is_pmem(const void *, size_t) { return 1; }
inline const char *pmem_errormsg() { return strerror(errno); }

inline void pmem_flush(const void *from, size_t bytes) {
    for (uintptr_t line = (uintptr_t)from & ~63ull; line < (uintptr_t)from + bytes; line += 64) asm volatile("clwb (%0)" ::"r"(line) : "memory");
}
inline void pmem_drain() { asm volatile("sfence" ::: "memory"); }
inline void pmem_persist(const void *from, size_t bytes) { pmem_flush(from, bytes), pmem_drain(); }
inline int pmem_msync(const void *from, size_t bytes) { return pmem_persist(from, bytes), 0; }
inline void *pmem_memcpy_nodrain(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes), pmem_flush(to, bytes), to; }
