/* The errors of METIS, without signals.
 *
 * When METIS fails, it jumps back to where its work began. Its own functions raise a signal, SIGABRT or SIGTERM, and the handler of the
 * whole process jumps. A signal from outside starts that jump, too: in the middle of an allocation, or on another thread, which has no
 * place to jump to. Both can crash the program. The functions here jump themselves, and set no handlers.
 *
 * This file replaces GKlib/error.c of metis-sys 0.3.2. It must define each name of that file that METIS uses: otherwise that file is
 * linked, too, and the linker reports names that are defined twice. Partitions of meshes, which this program does not use, raise
 * signals without these functions.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

/* The most calls of METIS that may be nested. Two are: the partition into k parts calls the one by halving. */
#define MOST 8

/* The number of calls that run on this thread, less one, and where they jump back to. */
__thread int gk_cur_jbufs = -1;
__thread jmp_buf gk_jbufs[MOST];

/* Whether a call on this thread has failed for lack of memory. */
static __thread int lacked_memory = 0;

/* METIS calls this when its work begins, and then sets the place to jump back to. */
int gk_sigtrap(void)
{
    if (gk_cur_jbufs + 1 == MOST)
        abort();
    gk_cur_jbufs++;
    return 1;
}

/* METIS calls this when its work ends. */
int gk_siguntrap(void)
{
    gk_cur_jbufs--;
    return 1;
}

static void leave(int cause)
{
    if (gk_cur_jbufs < 0)
        abort();
    if (cause == SIGABRT)
        lacked_memory = 1;
    longjmp(gk_jbufs[gk_cur_jbufs], cause);
}

/* METIS calls this when it fails: with SIGABRT for lack of memory, else with SIGTERM. */
void gk_errexit(int cause, char *message, ...)
{
    (void)message;
    leave(cause);
}

/* METIS calls this when it finds a mistake of its own. */
void errexit(char *message, ...)
{
    (void)message;
    leave(SIGTERM);
}

/* Returns whether a call on this thread has failed for lack of memory since this function was last called. METIS itself reports an
 * unknown error if the call was nested. A program that calls this function is linked with this file. */
int solver_metis_lacked_memory(void)
{
    int lacked = lacked_memory;
    lacked_memory = 0;
    return lacked;
}
