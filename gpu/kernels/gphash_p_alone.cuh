// Design P (gphash_p.cuh) with a thread an operation, which looks at one slot of its key after the
// other: what the paper's warps are compared with (its figure 9). The protocol is that of the
// warps, so that both lie in the same tables.
#pragma once

static __device__ __forceinline__ void fill_cell(const gphash &t, const uint4 *value, const uint4 *full, gpm_u32 cell) {
    for (gpm_u32 u = 0; u < t.units; u++) gph_cell(t, cell)[u] = value[u];
    for (gpm_u32 u = 0; u < GPH_KEY_UNITS(t); u++) gph_cell(t, cell)[t.units + u] = full[u];
}

static __device__ __forceinline__ gpm_u32 take_cell(const gphash &t) { return t.spares[atomicAdd((gpm_u64 *)&t.counts[GPH_TAKEN], 1ull) % t.ring]; }

// What a look at a key's places has found, up to the one that has the key.
struct look {
    place p;       // that one; slot GPH_NONE if none has it
    gpm_u32 free;  // places that are free
    bool marked;   // an insert has claimed one for a key with the same hash
};

static __device__ __forceinline__ look look_at(const gphash &t, const gph_hash &h, gpm_u64 key) {
    const gpm_u64 claimed = MARK_CLAIMED << 32 | (gpm_u32)h.second, pending = MARK_PENDING << 32 | (gpm_u32)h.second;
    look l;
    l.free = 0;
    l.marked = false;
    for (gpm_u32 at = 0; at < t.width * t.hashes * t.levels; at++) {
        l.p = place_of(t, h, at);
        gpm_u64 word = place_load(l.p);
        if (word == key && l.p.slot != GPH_NONE) return l;
        l.free |= (gpm_u32)is_free(t, l.p, word) << at;
        l.marked = l.marked || word == claimed || word == pending;
    }
    l.p.slot = GPH_NONE;
    return l;
}

// Claims a slot for a key that is not there. GPH_DONE with its place, GPH_EXISTS, GPH_FULL, or
// GPH_WAITING: to be tried again.
static __device__ __forceinline__ gpm_u32 claim(const gphash &t, const gph_hash &h, gpm_u64 key, look &l) {
    const gpm_u64 claimed = MARK_CLAIMED << 32 | (gpm_u32)h.second, pending = MARK_PENDING << 32 | (gpm_u32)h.second;
    if (l.marked) return GPH_WAITING;
    if (!l.free) return GPH_FULL;
    l.p = place_of(t, h, emptiest(t, l.free));
    gpm_u64 word = place_load(l.p);
    if (!is_free(t, l.p, word) || atomicCAS(l.p.key, word, claimed) != word) return GPH_WAITING;
    // The claim before the look: of two who do both, one sees the other.
    __threadfence();
    gpm_u32 outcome = GPH_DONE;
    while (true) {
        bool exists = false, yields = false, waits = false;
        for (gpm_u32 at = 0; at < t.width * t.hashes * t.levels; at++) {
            const place p = place_of(t, h, at);
            gpm_u64 now = place_load(p);
            bool other = now == claimed && p.slot != l.p.slot;
            exists = exists || now == key;
            // Of two who see each other the higher one gives up; the lower one waits until the
            // other has decided.
            yields = yields || now == pending || (other && p.slot < l.p.slot);
            waits = waits || other;
        }
        if (exists) outcome = GPH_EXISTS;
        else if (yields) outcome = GPH_WAITING;
        else if (waits) continue;
        break;
    }
    gph_store(l.p.key, outcome == GPH_DONE ? pending : word);
    return outcome;
}

static __device__ __forceinline__ gpm_u32 run_one(const gphash &t, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value, uint4 *found) {
    const gph_hash h = gph_hash_of(t, key);
    gpm_u32 fresh = GPH_NONE, outcome = GPH_WAITING;
    bool inserts = op == GPH_INSERT, reads = op == GPH_GET || op == GPH_RMW;
    while (outcome == GPH_WAITING) {
        look l = look_at(t, h, key);
        bool hit = l.p.slot != GPH_NONE;
        if (!hit && op == GPH_PUT) inserts = true;
        if (!hit && !inserts) {
            outcome = GPH_ABSENT;
            continue;
        }
        if (!hit) {
            outcome = claim(t, h, key, l);
            if (outcome == GPH_EXISTS && (op == GPH_PUT || GPH_KEY_UNITS(t))) outcome = GPH_WAITING;
            if (outcome != GPH_DONE) continue;
            if (fresh == GPH_NONE) fresh = take_cell(t);
            fill_cell(t, value, full, fresh);
            gph_store(l.p.pointer, gph_pointer(l.p.slot, fresh));
            // Value and pointer have persisted before the key is there.
            gpm_persist();
            gph_store(l.p.key, key);
            gpm_persist();
            fresh = GPH_NONE;
            continue;
        }
        gpm_u64 pointer = gph_load(l.p.pointer);
        // Deleted between key and pointer: the next look sees it.
        if (!pointer) continue;
        if (!gph_same(t, gph_cell_of(pointer), full)) {
            outcome = op == GPH_INSERT || op == GPH_PUT ? GPH_COLLIDES : GPH_ABSENT;
        } else if (op == GPH_INSERT) {
            outcome = GPH_EXISTS;
        } else if (op == GPH_DELETE) {
            bool won = atomicCAS(l.p.key, key, MARK_GIVEN_UP << 32 | t.epoch) == key;
            if (won) {
                pointer = atomicExch(l.p.pointer, 0ull);
                if (pointer) give_cell(t, gph_cell_of(pointer));
                outcome = GPH_DONE;
            }
            gpm_persist();
        } else if (reads) {
            __threadfence();
            const uint4 *cell = gph_cell(t, gph_cell_of(pointer));
            for (gpm_u32 u = 0; found && u < t.units; u++) found[u] = cell[u];
            reads = false;
            if (op == GPH_GET) outcome = GPH_DONE;
        } else {
            if (fresh == GPH_NONE) {
                fresh = take_cell(t);
                fill_cell(t, value, full, fresh);
                gpm_persist();
            }
            gpm_u64 seen = atomicCAS(l.p.pointer, pointer, gph_pointer(l.p.slot, fresh));
            if (!seen) continue;
            // Another pointer: another update came between, and overwrote this one.
            if (seen == pointer) fresh = gph_cell_of(pointer);
            gpm_persist();
            outcome = GPH_DONE;
        }
    }
    // What was taken and not used, or what an update has replaced.
    if (fresh != GPH_NONE) give_cell(t, fresh);
    return outcome;
}

template <bool BATCHED>
static __device__ __forceinline__ gpm_u32 gph_run(const gphash &t, bool wanted, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value,
                                                  uint4 *found) {
    gpm_u32 outcome = wanted ? run_one(t, op, key, full, value, found) : GPH_DONE;
    // What the answers depend on: what others have stored and this thread has read.
    if (!BATCHED) gpm_persist();
    __syncwarp();
    return outcome;
}
