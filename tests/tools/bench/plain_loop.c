/* The least that any twin has to do for an event: find the message by its id in a hash table, and keep the number and
 * the bytes of messages of each queue. No rules, no order, no units of work. A yardstick for the kernel. */

#include <stdint.h>

struct event { int64_t msgid; int32_t queue; int32_t length; int8_t is_put; };
struct row { int64_t msgid; int32_t queue; int32_t length; };  /* msgid -1: free, -2: was removed */

static inline uint64_t bucket_of(int64_t msgid) { return (uint64_t)msgid * 0x9E3779B97F4A7C15ull; }

/* Apply events to a table of 2^bits rows and to two totals a queue. Return the number of gets without a message. */
int64_t apply(const struct event *events, int64_t count, struct row *rows, int bits, int64_t *depths, int64_t *bytes)
{
    const uint64_t mask = (1ull << bits) - 1;
    int64_t unmatched = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct event *e = &events[i];
        uint64_t at = bucket_of(e->msgid) >> (64 - bits);
        if (e->is_put) {
            while (rows[at].msgid >= 0)
                at = (at + 1) & mask;
            rows[at] = (struct row){e->msgid, e->queue, e->length};
            depths[e->queue]++;
            bytes[e->queue] += e->length;
            continue;
        }
        while (rows[at].msgid != e->msgid && rows[at].msgid != -1)
            at = (at + 1) & mask;
        if (rows[at].msgid == -1) {
            unmatched++;
            continue;
        }
        rows[at].msgid = -2;
        depths[rows[at].queue]--;
        bytes[rows[at].queue] -= rows[at].length;
    }
    return unmatched;
}
