/* Preloaded into a build: a disk that fills up, a folder that turns read-only, a clock that jumps.

   OPC_SHIM_ROOT    the folder below which calls fail
   OPC_SHIM_AFTER   how many calls succeed there before all that write fail
   OPC_SHIM_ERROR   the errno that they fail with
   OPC_SHIM_JUMP    seconds by which the clock jumps, forwards and backwards in turns; monotonic clocks stay right */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) static __typeof__(&name) next; if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int fails(const char *path) {
  static long left = -2;
  const char *root = getenv("OPC_SHIM_ROOT");
  if (!root || !path) return 0;
  if (path[0] == '/' && strncmp(path, root, strlen(root)) != 0) return 0;
  if (left == -2) left = atol(getenv("OPC_SHIM_AFTER"));
  if (left > 0) { --left; return 0; }
  errno = atoi(getenv("OPC_SHIM_ERROR"));
  return 1;
}

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

#define OPENS(name)                                        \
  int name(const char *path, int flags, ...) {             \
    NEXT(name);                                            \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                          \
    return writes(flags) && fails(path) ? -1 : next(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

ssize_t write(int fd, const void *data, size_t size) {
  NEXT(write);
  char link[64], path[4096];
  ssize_t length = -1;
  if (fd > 2 && getenv("OPC_SHIM_ROOT")) {
    char *at = link + strlen(strcpy(link, "/proc/self/fd/"));
    int digits = 1;
    for (int rest = fd; rest >= 10; rest /= 10) ++digits;
    at[digits] = 0;
    for (int rest = fd; digits > 0; rest /= 10) at[--digits] = (char)('0' + rest % 10);
    length = readlink(link, path, sizeof path - 1);
  }
  if (length > 0 && path[0] == '/') {
    path[length] = 0;
    if (fails(path)) {
      /* A disk that fills up takes a part first. */
      if (size > 1 && errno == ENOSPC && next(fd, data, size / 2) > 0) errno = ENOSPC;
      return -1;
    }
  }
  return next(fd, data, size);
}

int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  return fails(path) ? -1 : next(path, mode);
}

int rename(const char *from, const char *to) {
  NEXT(rename);
  return fails(to) ? -1 : next(from, to);
}

int unlink(const char *path) {
  NEXT(unlink);
  const char *error = getenv("OPC_SHIM_ERROR");
  /* A full disk lets go of files. */
  return error && atoi(error) == EROFS && fails(path) ? -1 : next(path);
}

static time_t jump(void) {
  static long calls;
  const char *by = getenv("OPC_SHIM_JUMP");
  return by ? (++calls % 2 ? atol(by) : -atol(by)) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  NEXT(clock_gettime);
  int status = next(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
  return status;
}

time_t time(time_t *now) {
  NEXT(time);
  time_t found = next(NULL) + jump();
  if (now) *now = found;
  return found;
}

int gettimeofday(struct timeval *now, void *zone) {
  NEXT(gettimeofday);
  int status = next(now, zone);
  now->tv_sec += jump();
  return status;
}
