/* A system clock that a test sets, for LD_PRELOAD: adds the seconds in the file MQTWIN_TEST_CLOCK (int64, mapped) to the
   wall clock. Monotonic clocks stay as they are, and so do waits: a deadline of the wall clock is given to the kernel in
   the kernel's own time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const int64_t zero;
static volatile const int64_t *seconds = &zero;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("MQTWIN_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) seconds = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *seconds;
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec fine;
    int status = clock_gettime(CLOCK_REALTIME, &fine);
    now->tv_sec = fine.tv_sec;
    now->tv_usec = fine.tv_nsec / 1000;
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

static struct timespec in_kernel_time(const struct timespec *deadline) {
    struct timespec own = *deadline;
    if (own.tv_sec > 1000000000) own.tv_sec -= *seconds; /* no monotonic clock is that far */
    return own;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next) next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!next) next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec own = in_kernel_time(deadline);
    return next(cond, mutex, &own);
}

int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *deadline) { /* librdkafka */
    static int (*next)(cnd_t *, mtx_t *, const struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec own = in_kernel_time(deadline);
    return next(cond, mutex, &own);
}
