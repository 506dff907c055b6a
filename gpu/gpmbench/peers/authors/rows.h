// Looks at the authors' table in PM, row by row: 50 M rows as they were inserted, of which a
// selection was updated.
#pragma once
#include <vector>

static void wrong_rows(virginian *v, unsigned table, long rows, const int *selected, long updated, const char *when) {
    std::vector<bool> changed(rows, false);
    for (long i = 0; i < updated; i++) changed[selected[i]] = true;
    cudaDeviceSynchronize();
    virg_tablet_meta *tablet;
    virg_db_load(v, v->db.first_tablet[table], &tablet);
    long row = 0, wrong = 0;
    for (;;) {
        const char *base = (const char *)tablet->base_ptr, *fixed = base + tablet->fixed_block;
        for (unsigned at = 0; at < tablet->rows && row < rows; at++, row++) {
            auto column = [&](int number) { return fixed + tablet->fixed_offset[number] + at * tablet->fixed_stride[number]; };
            auto integer = [&](int number) { return *(const int *)column(number); };
            auto real = [&](int number) { return *(const float *)column(number); };
            int i = (int)row, key = *(const int *)(base + tablet->key_block + at * tablet->key_stride);
            wrong += key != i || integer(0) != i || integer(1) != (changed[row] ? 100 : 2 * i) || integer(2) != i / 10 || real(3) != 0.1f * (float)i ||
                     real(4) != (float)i / 2.0f;
        }
        if (tablet->last_tablet || row >= rows) break;
        virg_db_loadnext(v, &tablet);
    }
    virg_tablet_unlock(v, tablet->id);
    printf("rows in PM that are wrong %s: %ld of %ld, %ld updated, %s\n", when, wrong + (rows - row), rows, updated, cudaGetErrorString(cudaGetLastError()));
}
