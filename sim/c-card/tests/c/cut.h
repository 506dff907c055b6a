/* What programs have in common that are cut or killed somewhere, and looked at afterwards:
 *
 *     PROGRAM POOL WAY prepare
 *     PROGRAM POOL WAY work SEED OPERATIONS      prints a dot when an operation has returned
 *     PROGRAM POOL WAY verify SEED DOTS
 *
 * Each operation is atomic. What is found must be what a model has after as many operations as were
 * acknowledged, or one more.
 */
#ifndef CUT_H
#define CUT_H

#include "check.h"

#include <stdint.h>
#include <unistd.h>

struct random {
    uint64_t state;
};

/* The draws of an operation. */
static inline struct random draws(uint64_t seed, uint64_t index)
{
    struct random random = {seed * 0x9E3779B97F4A7C15u + (index + 1) * 0xBF58476D1CE4E5B9u};
    return random;
}

static inline uint64_t draw(struct random *random, uint64_t below)
{
    uint64_t x = random->state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (x ^ x >> 31) % below;
}

struct model;

/* Of the program: an operation on a model, and on the pool; the first difference between the two;
 * commands that were posted. */
static void advance(struct model *model, uint64_t seed, uint64_t index);
static void perform(const struct model *model, uint64_t seed, uint64_t index);
static const char *difference(const struct model *model);
static uint64_t commands(void);

static inline void work(struct model *model, uint64_t seed, uint64_t operations)
{
    for (uint64_t index = 0; index < operations; index++) {
        perform(model, seed, index);
        advance(model, seed, index);
        const char *wrong = difference(model);
        if (wrong != NULL) {
            fprintf(stderr, "after operation %llu: %s\n", (unsigned long long)index, wrong);
            exit(1);
        }
        CHECK(write(STDOUT_FILENO, ".", 1) == 1);
    }
    fprintf(stderr, "%llu commands\n", (unsigned long long)commands());
}

static inline void verify(struct model *model, uint64_t seed, uint64_t acknowledged)
{
    for (uint64_t index = 0; index < acknowledged; index++)
        advance(model, seed, index);
    const char *before = difference(model);
    if (before == NULL)
        return;
    advance(model, seed, acknowledged);
    const char *after = difference(model);
    if (after != NULL) {
        fprintf(stderr, "after %llu operations: %s; with the next one: %s\n", (unsigned long long)acknowledged, before,
                after);
        exit(1);
    }
}

static inline void run(struct model *model, int count, char **arguments)
{
    if (count != 6)
        return;
    uint64_t seed = strtoull(arguments[4], NULL, 10), number = strtoull(arguments[5], NULL, 10);
    if (strcmp(arguments[3], "work") == 0)
        work(model, seed, number);
    else
        verify(model, seed, number);
}

#endif
