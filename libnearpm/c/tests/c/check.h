/* Checks of the programs that test the C interface. */
#ifndef CHECK_H
#define CHECK_H

#include <nearpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (code %d, message \"%s\")\n", __FILE__, __LINE__, #condition, nearpm_errno(),   \
                    nearpm_errormsg());                                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OK(call) CHECK((call) == NEARPM_OK)

/* A call that must fail with a code, which must be the thread's last one, too, and with a
 * message. */
#define REFUSED(code, call)                                                                                            \
    do {                                                                                                               \
        CHECK((call) == (code));                                                                                       \
        CHECK(nearpm_errno() == (code) && strlen(nearpm_errormsg()) > 10);                                             \
    } while (0)

/* The options that the program's second argument asks for: a mode, or a mechanism for a working
 * copy. */
static inline struct nearpm_options options_of(int count, char **arguments)
{
    static const char *const mechanisms[] = {"working-copy", "undo", "redo", "checkpoint", "shadow"};
    struct nearpm_options options;
    memset(&options, 0, sizeof options);
    CHECK(count >= 3);
    options.survives = NEARPM_AS_PERSISTENT_MEMORY;
    options.mode = strcmp(arguments[2], "in-place") == 0 ? NEARPM_IN_PLACE : NEARPM_WORKING_COPY;
    for (uint32_t i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++)
        if (strcmp(arguments[2], mechanisms[i]) == 0)
            options.mechanism = i;
    CHECK(options.mode == NEARPM_IN_PLACE || strcmp(arguments[2], mechanisms[options.mechanism]) == 0);
    return options;
}

/* Whether new pools lie on a simulated card: the environment says so. */
static inline int on_card(void)
{
    return getenv("NEARPM_CARD") != NULL;
}

#endif
