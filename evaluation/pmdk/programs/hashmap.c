/*
 * Hash map with chains, whose table doubles in a transaction of its own once chains are long and
 * entries twice as many as buckets. Snapshots: the bucket and the count of an insertion; the old
 * table and each entry's link of a doubling.
 */
#include <stddef.h>

#include "maps.h"

#define FIRST_BUCKETS 10
/*
 * A longer chain lets the table double when it is loaded, or when it is not. PMDK's example has 10
 * for the latter, with a hash that clusters; with the even one here 7 makes doublings move as many
 * entries an insertion as there.
 */
#define LONG_CHAIN 5
#define LONGEST_CHAIN 7

struct entry {
    uint64_t key;
    PMEMoid value;
    PMEMoid next;
};

struct table {
    uint64_t size;
    PMEMoid buckets[];
};

struct map {
    uint64_t count;
    PMEMoid table;
};

static struct map *map_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static struct table *table_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static struct entry *entry_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static uint64_t bucket_of(const struct table *table, uint64_t key)
{
    return (key * 0x9E3779B97F4A7C15u >> 32) % table->size;
}

static size_t table_bytes(uint64_t size)
{
    return offsetof(struct table, buckets) + size * sizeof(PMEMoid);
}

static PMEMoid new_table(uint64_t size)
{
    PMEMoid table = pmemobj_tx_zalloc(table_bytes(size), TYPE_TABLE);
    table_at(table)->size = size;
    return table;
}

static PMEMoid create(void)
{
    PMEMoid map = pmemobj_tx_zalloc(sizeof(struct map), TYPE_MAP);
    map_at(map)->table = new_table(FIRST_BUCKETS);
    return map;
}

static void move_entries(struct table *from, struct table *to)
{
    for (uint64_t i = 0; i < from->size; i++) {
        while (!OID_IS_NULL(from->buckets[i])) {
            PMEMoid moved = from->buckets[i];
            struct entry *entry = entry_at(moved);
            PMEMoid *bucket = &to->buckets[bucket_of(to, entry->key)];
            from->buckets[i] = entry->next;
            SET(entry->next, *bucket);
            *bucket = moved;
        }
    }
}

static void double_table(PMEMobjpool *pool, PMEMoid map)
{
    TX_BEGIN(pool) {
        PMEMoid old = map_at(map)->table;
        uint64_t size = table_at(old)->size;
        pmemobj_tx_add_range_direct(&map_at(map)->table, sizeof(PMEMoid));
        PMEMoid larger = new_table(2 * size);
        pmemobj_tx_add_range(old, 0, table_bytes(size));
        move_entries(table_at(old), table_at(larger));
        map_at(map)->table = larger;
        pmemobj_tx_free(old);
    } TX_END
}

static void insert_entry(PMEMoid map, uint64_t key, PMEMoid value)
{
    struct table *table = table_at(map_at(map)->table);
    PMEMoid *bucket = &table->buckets[bucket_of(table, key)];
    pmemobj_tx_add_range_direct(bucket, sizeof *bucket);
    pmemobj_tx_add_range_direct(&map_at(map)->count, sizeof(uint64_t));
    PMEMoid fresh = pmemobj_tx_alloc(sizeof(struct entry), TYPE_NODE);
    *entry_at(fresh) = (struct entry){key, value, *bucket};
    *bucket = fresh;
    map_at(map)->count++;
}

static void insert(PMEMobjpool *pool, PMEMoid map, uint64_t key, PMEMoid value)
{
    const struct table *table = table_at(map_at(map)->table);
    unsigned chain = 1;
    for (PMEMoid at = table->buckets[bucket_of(table, key)]; !OID_IS_NULL(at); at = entry_at(at)->next)
        chain++;
    TX_BEGIN(pool) {
        insert_entry(map, key, value);
    } TX_END
    if (chain > LONGEST_CHAIN || (chain > LONG_CHAIN && map_at(map)->count > 2 * table->size))
        double_table(pool, map);
}

static PMEMoid find(PMEMoid map, uint64_t key)
{
    const struct table *table = table_at(map_at(map)->table);
    PMEMoid at = table->buckets[bucket_of(table, key)];
    while (!OID_IS_NULL(at) && entry_at(at)->key != key)
        at = entry_at(at)->next;
    return OID_IS_NULL(at) ? OID_NULL : entry_at(at)->value;
}

const struct map_kind hashmap = {"hashmap", create, insert, find};
