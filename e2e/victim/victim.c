// The program of the test pods: speaks as a model server does, and dies of memory on demand.
//
// It is C, linked statically: a runtime (Go's, Rust's unwinder) would charge pages of its own to a small
// limit and would turn SIGBUS into a panic, where a Python server simply dies of it. Any machine that can
// build this project has a C compiler, since Rust links with it.
//
//     victim STEP [then STEP]...
//     VICTIM='STEP then STEP' vllm serve MODEL --flags...    where the arguments must read as an engine's
//     VICTIM_CHILD=NAME                                      what the kernel calls its children (worker)
//
//     say WORD                   one log line
//     name NAME                  the process' name from here on, as the kernel prints it
//     cat FILE                   prints a recorded log, with this moment for the time of each line
//     spam MIB                   prints that much log
//     grow MIB [STEP MS]         anonymous memory, STEP MiB (8) every MS ms (100), kept
//     file PATH MIB [STEP MS]    writes a file; where it does not fit, says so and exits 5
//     shm PATH MIB [STEP MS]     fills a shared mapping
//     ignore-term                SIGTERM has no effect from here on
//     child STEP                 in a child, waits and reports its end as Python's multiprocessing does
//     start STEP                 in a child, goes on at once
//     serve PORT DIR             HTTP: GET /v1/models answers with the file DIR/v1_models, and so on
//     sleep [SECONDS]            without a number: until SIGTERM
//     segv, exit CODE            ends
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const size_t MIB = 1024 * 1024;
static const char *role = "server";
static volatile int *volatile nowhere;

// One line in the form that Python servers print.
static void logline(const char *level, const char *format, ...)
{
    struct timeval now;
    char stamp[32];
    va_list args;

    gettimeofday(&now, NULL);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", gmtime(&now.tv_sec));
    printf("%s,%03ld %s [%s pid=%d] ", stamp, (long)now.tv_usec / 1000, level, role, (int)getpid());
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) == -1 && errno == EINTR) { }
}

static long number(char **argv, int i, long otherwise)
{
    for (int k = 0; k <= i; k++)
        if (argv[k] == NULL)
            return otherwise;
    return strtol(argv[i], NULL, 10);
}

static void grow(long mib, long step, long ms)
{
    logline("INFO", "allocating host buffers: %ld MiB in steps of %ld MiB", mib, step);
    for (long have = 0; have < mib; nap(ms)) {
        long next = have + step < mib ? step : mib - have;
        char *p = mmap(NULL, next * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            logline("ERROR", "cannot allocate %ld MiB: %s", next, strerror(errno));
            exit(6);
        }
        memset(p, 0x5a, next * MIB);
        logline("INFO", "allocated %ld MiB", have += next);
    }
}

static void write_file(const char *path, long mib, long step, long ms)
{
    char *block = malloc(MIB);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (block == NULL || fd < 0) {
        logline("ERROR", "cannot open %s: %s", path, strerror(errno));
        exit(5);
    }
    memset(block, 0x5a, MIB);
    logline("INFO", "writing %ld MiB to %s", mib, path);
    for (long have = 0; have < mib;) {
        for (size_t at = 0; at < MIB;) {
            ssize_t n = write(fd, block + at, MIB - at);
            if (n < 0) {
                logline("ERROR", "write to %s failed after %ld MiB: %s", path, have, strerror(errno));
                exit(5);
            }
            at += n;
        }
        if (++have % step == 0) {
            logline("INFO", "wrote %ld MiB of %ld MiB", have, mib);
            nap(ms);
        }
    }
    close(fd);
    free(block);
}

static void fill_shm(const char *path, long mib, long step, long ms)
{
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    char *p = MAP_FAILED;
    // The size is promised, not checked: pages are taken when they are touched.
    if (fd >= 0 && ftruncate(fd, mib * MIB) == 0)
        p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        logline("ERROR", "cannot map %s: %s", path, strerror(errno));
        exit(5);
    }
    logline("INFO", "shared memory segment %s of %ld MiB mapped", path, mib);
    for (long have = 0; have < mib;) {
        memset(p + have * MIB, 0x5a, MIB);
        if (++have % step == 0) {
            logline("INFO", "filled %ld MiB of %ld MiB", have, mib);
            nap(ms);
        }
    }
}

static int copy(const char *path, int out)
{
    static char buffer[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0, w; at < n; at += w)
            if ((w = write(out, buffer + at, n - at)) < 0)
                n = w = 0;
    close(fd);
    return 1;
}

// Puts now over each "MM-DD HH:MM:SS": a log that is months older than its pod would be another pod's.
static void stamp_now(char *line)
{
    static const char form[] = "00-00 00:00:00";
    char now[sizeof form];
    time_t t = time(NULL);
    strftime(now, sizeof now, "%m-%d %H:%M:%S", gmtime(&t));
    for (char *p = line; strlen(p) >= sizeof form - 1; p++) {
        size_t k = 0;
        while (k < sizeof form - 1 && (form[k] == '0' ? p[k] >= '0' && p[k] <= '9' : p[k] == form[k]))
            k++;
        if (k == sizeof form - 1)
            memcpy(p, now, k);
    }
}

static int replay(const char *path)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    while (getline(&line, &room, f) > 0) {
        stamp_now(line);
        fputs(line, stdout);
    }
    fflush(stdout);
    free(line);
    fclose(f);
    return 1;
}

static void spam(long mib)
{
    char text[129];
    long bytes = 0;
    memset(text, '#', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (long i = 0; bytes < mib * (long)MIB; i++)
        bytes += printf("INFO 11-21 12:00:00 [loggers.py:123] Engine 000: request %09ld %s\n", i, text);
    fflush(stdout);
}

// One request a connection, one connection at a time: enough for a scraper and a test.
static void serve(long port, const char *dir)
{
    int on = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {2, 0};

    signal(SIGPIPE, SIG_IGN);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, (struct sockaddr *)&here, sizeof here) < 0 || listen(s, 64) < 0) {
        logline("ERROR", "cannot listen on port %ld: %s", port, strerror(errno));
        exit(1);
    }
    logline("INFO", "Uvicorn running on http://0.0.0.0:%ld (Press CTRL+C to quit)", port);
    for (;;) {
        char request[4096], name[512], path[1024], head[256];
        struct stat st;
        int c = accept(s, NULL, NULL);
        if (c < 0)
            continue;
        setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ssize_t n = read(c, request, sizeof request - 1);
        request[n > 0 ? n : 0] = 0;
        if (sscanf(request, "%*7s /%511[^? ]", name) != 1)
            strcpy(name, "index");
        for (char *p = name; *p; p++)
            if (*p == '/')
                *p = '_';
        snprintf(path, sizeof path, "%s/%s", dir, name);
        int found = strstr(name, "..") == NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode);
        int healthy = strcmp(name, "health") == 0;
        snprintf(head, sizeof head,
                 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %ld\r\nConnection: close\r\n\r\n",
                 found || healthy ? "200 OK" : "404 Not Found",
                 strcmp(name, "metrics") == 0 ? "text/plain; version=0.0.4; charset=utf-8" : "application/json",
                 found ? (long)st.st_size : 0);
        if (write(c, head, strlen(head)) > 0 && found)
            copy(path, c);
        close(c);
    }
}

// The kernel keeps a signal without a handler away from PID 1, so the plain end needs one.
static void ended(int sig)
{
    (void)sig;
    _exit(143);
}

static void run(char **argv);

static void child(char **argv, int wait_for_it)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        role = "worker";
        prctl(PR_SET_NAME, getenv("VICTIM_CHILD") ? getenv("VICTIM_CHILD") : "worker");
        run(argv);
        exit(0);
    }
    if (!wait_for_it)
        return;
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) { }
    int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    logline(code ? "ERROR" : "INFO", "worker process %d exited with exit code %d", (int)pid, code);
}

static void run(char **argv)
{
    const char *step = argv[0], *arg = step && argv[1] ? argv[1] : "";
    if (step == NULL)
        return;
    if (strcmp(step, "say") == 0)
        logline("INFO", "%s", arg);
    else if (strcmp(step, "name") == 0)
        prctl(PR_SET_NAME, arg);
    else if (strcmp(step, "cat") == 0) {
        if (!replay(arg))
            logline("ERROR", "cannot read %s", arg);
    } else if (strcmp(step, "spam") == 0)
        spam(number(argv, 1, 1));
    else if (strcmp(step, "grow") == 0)
        grow(number(argv, 1, 64), number(argv, 2, 8), number(argv, 3, 100));
    else if (strcmp(step, "file") == 0)
        write_file(arg, number(argv, 2, 64), number(argv, 3, 8), number(argv, 4, 100));
    else if (strcmp(step, "shm") == 0)
        fill_shm(arg, number(argv, 2, 64), number(argv, 3, 8), number(argv, 4, 100));
    else if (strcmp(step, "ignore-term") == 0) {
        signal(SIGTERM, SIG_IGN);
        logline("INFO", "SIGTERM is ignored from here on");
    } else if (strcmp(step, "child") == 0)
        child(argv + 1, 1);
    else if (strcmp(step, "start") == 0)
        child(argv + 1, 0);
    else if (strcmp(step, "serve") == 0)
        serve(number(argv, 1, 8000), *arg && argv[2] ? argv[2] : "/www");
    else if (strcmp(step, "sleep") == 0)
        nap(number(argv, 1, 1000000) * 1000);
    else if (strcmp(step, "segv") == 0)
        *nowhere = 1;
    else if (strcmp(step, "exit") == 0) {
        fflush(stdout);
        exit(number(argv, 1, 0));
    } else {
        logline("ERROR", "unknown step %s", step);
        exit(64);
    }
}

// What VICTIM holds, split at blanks: it goes before the arguments.
static char **steps_of_environment(char **argv)
{
    static char *words[256];
    const char *text = getenv("VICTIM");
    if (text == NULL)
        return argv + 1;
    char *copied = strdup(text), *rest = NULL;
    size_t n = 0;
    for (char *w = strtok_r(copied, " \n", &rest); w != NULL && n < 255; w = strtok_r(NULL, " \n", &rest))
        words[n++] = w;
    return words;
}

int main(int argc, char **argv)
{
    (void)argc;
    signal(SIGTERM, ended);
    for (char **at = steps_of_environment(argv); *at != NULL;) {
        char **end = at;
        while (*end != NULL && strcmp(*end, "then") != 0)
            end++;
        char **next = *end == NULL ? end : end + 1;
        *end = NULL;
        run(at);
        at = next;
    }
    return 0;
}
