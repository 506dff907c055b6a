/* Stores that are not added, with the lint on: it is told so on standard error. */
#include "check.h"

#include <stdint.h>

int main(int count, char **arguments)
{
    struct nearpm_options options = options_of(count, arguments);
    struct nearpm_pool *pool;
    struct nearpm_tx *tx;
    uint64_t *words;
    options.lint = 1;
    OK(nearpm_create(arguments[1], 8 << 20, &options, &pool));
    OK(nearpm_root(pool, 4096, (void **)&words));
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, &words[0], 8));
    words[0] = 1;
    words[100] = 2;
    OK(nearpm_tx_commit(tx));
    OK(nearpm_close(pool));
    return 0;
}
