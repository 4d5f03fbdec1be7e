/* What decoders are made of, on a CPU, in single precision.

   - product, outer: products of rows with a matrix, and their gradients.
   - attend, attend_back: causal attention of streams that lie one behind another in rows, and its gradients.
   - gelu, gelu_back: GELU in its tanh form.
   - joined, joined_back: a branch joins the residual stream, whose rows are then normalised.

   PyTorch's own operations pass over memory for each elementary step, split rows into batches for attention, and
   leave products to a library that uses the wide instructions of its own maker's processors alone. All is computed
   by the thread that calls, in an order that is always the same. Rows are contiguous in their last axis; strides
   count numbers. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Which text this was made from, so that a library of another one is never used. */
const char source[] = SOURCE;

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

/* So many rows of a product are computed together: of large ones, and of those in attention. */
#if LANES == 16
#define TALL 8
#else
#define TALL 4
#endif
#define ROWS 4

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *p) { return *(const loose *)p; }
INLINE void store(float *p, vec x) { *(loose *)p = x; }
INLINE vec splat(float x) { return x - (vec){0}; }
INLINE vec choose(ivec where, vec x, vec y) { return (vec)((where & (ivec)x) | (~where & (ivec)y)); }

INLINE float total(vec x)
{
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

/* exp to 2 units in the last place: 2^n e^r with |r| <= log(2) / 2, by the series of e^r up to r^7. */
INLINE vec exponential(vec x)
{
    x = choose(x < -87.0f, splat(-87.0f), x);
    x = choose(x > 88.0f, splat(88.0f), x);
    vec twos = x * 1.44269504f;
    ivec n = __builtin_convertvector(twos + choose(twos < 0.0f, splat(-0.5f), splat(0.5f)), ivec);
    vec whole = __builtin_convertvector(n, vec);
    vec r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    vec sum = splat(1.0f / 5040);
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return (vec)((ivec)sum + (n << 23));
}

/* GELU(x) = x sigmoid(SLOPE x + CUBIC x^3). */
#define SLOPE 1.5957691216057308f
#define CUBIC (0.044715f * SLOPE)

INLINE vec sigmoid(vec x) { return 1.0f / (1.0f + exponential(-x)); }
INLINE vec gelu_of(vec x) { return x * sigmoid(x * (SLOPE + CUBIC * x * x)); }

INLINE vec gelu_slope(vec x)
{
    x = choose(x < -15.0f, splat(-15.0f), x); /* the slope there is that at any smaller number: 0 */
    x = choose(x > 15.0f, splat(15.0f), x);
    vec s = sigmoid(x * (SLOPE + CUBIC * x * x));
    return s + x * s * (1.0f - s) * (SLOPE + 3 * CUBIC * x * x);
}

void gelu(const float *x, float *out, long count)
{
    long i = 0;
    for (; i + LANES <= count; i += LANES) store(out + i, gelu_of(load(x + i)));
    for (; i < count; i++) out[i] = gelu_of(splat(x[i]))[0];
}

void gelu_back(const float *x, const float *of_out, float *of_x, long count)
{
    long i = 0;
    for (; i + LANES <= count; i += LANES) store(of_x + i, gelu_slope(load(x + i)) * load(of_out + i));
    for (; i < count; i++) of_x[i] = gelu_slope(splat(x[i]))[0] * of_out[i];
}

/* normed = (sum - mean) / std of sum = stream + branch; without a branch, nothing is written to sum. */
void joined(
    const float *stream, const float *branch, float *sum, float *normed, float *scale, long rows, long width)
{
    for (long row = 0; row < rows; row++, stream += width, normed += width) {
        const float *x = stream;
        if (branch) {
            for (long i = 0; i < width; i++) sum[i] = stream[i] + branch[i];
            x = sum;
            branch += width;
        }
        vec sums = {0}, squares = {0};
        float mean = 0, variance = 0;
        long i = 0;
        for (; i + LANES <= width; i += LANES) sums += load(x + i);
        for (mean = total(sums); i < width; i++) mean += x[i];
        mean /= width;
        for (i = 0; i + LANES <= width; i += LANES) {
            vec away = load(x + i) - mean;
            squares += away * away;
        }
        for (variance = total(squares); i < width; i++) variance += (x[i] - mean) * (x[i] - mean);
        float inverse = 1 / sqrtf(variance / width + 1e-5f);
        for (i = 0; i < width; i++) normed[i] = (x[i] - mean) * inverse;
        scale[row] = inverse;
        if (branch) sum += width;
    }
}

/* of_stream = of_sum + scale (g - mean g - y mean(y g)) with y = normed, g = of_normed. */
void joined_back(
    const float *normed, const float *scale, const float *of_sum, const float *of_normed, float *of_stream,
    long rows, long width)
{
    for (long row = 0; row < rows; row++, normed += width, of_normed += width, of_stream += width) {
        vec sums = {0}, alongs = {0};
        float mean, along;
        long i = 0;
        for (; i + LANES <= width; i += LANES) {
            vec g = load(of_normed + i);
            sums += g;
            alongs += g * load(normed + i);
        }
        for (mean = total(sums), along = total(alongs); i < width; i++) {
            mean += of_normed[i];
            along += of_normed[i] * normed[i];
        }
        mean /= width;
        along /= width;
        for (i = 0; i < width; i++) of_stream[i] = scale[row] * (of_normed[i] - mean - normed[i] * along);
        if (of_sum) {
            for (i = 0; i < width; i++) of_stream[i] += of_sum[i];
            of_sum += width;
        }
    }
}

/* tall x (across LANES) of a product: out[r][c] = sum over k of a[r a_row + k a_step] b[k b_step + c], on top of
   what is there if it is to be added, and of a row of numbers if there is one. */
INLINE void block(
    int tall, int across, const float *a, long a_row, long a_step, const float *b, long b_step, long terms,
    const float *row, int add, float *out, long out_row)
{
    vec sums[TALL][2];
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < across; c++) sums[r][c] = row ? load(row + c * LANES) : (vec){0};
    for (long k = 0; k < terms; k++, a += a_step, b += b_step) {
        vec own[2];
        for (int c = 0; c < across; c++) own[c] = load(b + c * LANES);
        for (int r = 0; r < tall; r++)
            for (int c = 0; c < across; c++) sums[r][c] += a[r * a_row] * own[c];
    }
    for (int r = 0; r < tall; r++)
        for (int c = 0; c < across; c++) {
            float *to = out + r * out_row + c * LANES;
            store(to, add ? load(to) + sums[r][c] : sums[r][c]);
        }
}

/* ROWS rows of a product with so many columns, a multiple of LANES. */
static void times(
    const float *a, long a_row, long a_step, const float *b, long b_step, long terms, float *out, long out_row,
    long columns)
{
    long c = 0;
    for (; c + 2 * LANES <= columns; c += 2 * LANES)
        block(ROWS, 2, a, a_row, a_step, b + c, b_step, terms, NULL, 0, out + c, out_row);
    if (c < columns) block(ROWS, 1, a, a_row, a_step, b + c, b_step, terms, NULL, 0, out + c, out_row);
}

/* So many rows, any number, and (across LANES) columns. */
INLINE void panel(
    int across, const float *a, long a_row, long a_step, const float *b, long b_step, long terms, const float *row,
    int add, float *out, long out_row, long rows)
{
    long r = 0;
    for (; r + TALL <= rows; r += TALL)
        block(TALL, across, a + r * a_row, a_row, a_step, b, b_step, terms, row, add, out + r * out_row, out_row);
    for (; r < rows; r++)
        block(1, across, a + r * a_row, a_row, a_step, b, b_step, terms, row, add, out + r * out_row, out_row);
}

/* rows x width to (rows, to a multiple) x wide, with zeros around them. */
static void packed(const float *from, long stride, long rows, long width, float *to, long up, long wide)
{
    for (long r = 0; r < up; r++, to += wide) {
        long kept = r < rows ? width : 0;
        if (kept) memcpy(to, from + r * stride, 4 * kept);
        memset(to + kept, 0, 4 * (wide - kept));
    }
}

/* rows x width to width x wide. */
static void turned(const float *from, long stride, long rows, long width, float *to, long wide)
{
    for (long c = 0; c < width; c++, to += wide) {
        for (long r = 0; r < rows; r++) to[r] = from[r * stride + c];
        memset(to + rows, 0, 4 * (wide - rows));
    }
}

INLINE long up(long count, long multiple) { return (count + multiple - 1) / multiple * multiple; }

#define CHUNK 128 /* rows whose factors stay in a cache while all columns of the matrix pass by */
#define TERMS 512 /* rows that are summed up before the sums go back to memory */

/* out = x w + row for each of some models: x has so many terms in a row, w as many rows, or columns if it is given
   turned. A row may be missing. Returns 0, or 1 if there is no memory. */
int product(
    const float *x, const float *w, const float *row, float *out, long models, long rows, long terms, long columns,
    long is_turned)
{
    long wide = up(columns, LANES), whole = columns / LANES * LANES;
    int packs = is_turned || whole < columns;
    float *room = aligned_alloc(64, 4 * up(terms * wide + CHUNK * LANES + LANES, 16));
    if (!room) return 1;
    float *last = room + terms * wide, *last_row = last + CHUNK * LANES;
    for (long model = 0; model < models; model++) {
        const float *own = packs ? room : w;
        if (is_turned)
            turned(w, terms, columns, terms, room, wide);
        else if (packs)
            packed(w, columns, terms, columns, room, terms, wide);
        if (row && whole < columns) packed(row + whole, 0, 1, columns - whole, last_row, 1, LANES);
        for (long first = 0; first < rows; first += CHUNK) {
            long some = rows - first < CHUNK ? rows - first : CHUNK, c = 0;
            const float *a = x + first * terms;
            float *to = out + first * columns;
            for (; c + 2 * LANES <= columns; c += 2 * LANES)
                panel(2, a, terms, 1, own + c, wide, terms, row ? row + c : NULL, 0, to + c, columns, some);
            for (; c + LANES <= columns; c += LANES)
                panel(1, a, terms, 1, own + c, wide, terms, row ? row + c : NULL, 0, to + c, columns, some);
            if (c < columns) {
                panel(1, a, terms, 1, own + c, wide, terms, row ? last_row : NULL, 0, last, LANES, some);
                for (long r = 0; r < some; r++) memcpy(to + r * columns + c, last + r * LANES, 4 * (columns - c));
            }
        }
        x += rows * terms, w += terms * columns, out += rows * columns;
        if (row) row += columns;
    }
    free(room);
    return 0;
}

/* out = x^T g for each of some models, and the sums of the columns of g unless these are missing. Returns 0, or 1
   if there is no memory. */
int outer(
    const float *x, const float *g, float *out, float *sums, long models, long rows, long terms, long columns)
{
    float *room = aligned_alloc(64, 4 * up((TERMS + terms) * LANES, 16));
    if (!room) return 1;
    float *last = room + TERMS * LANES;
    memset(out, 0, 4 * models * terms * columns);
    if (sums) memset(sums, 0, 4 * models * columns);
    for (long model = 0; model < models; model++) {
        for (long first = 0; first < rows; first += TERMS) {
            long some = rows - first < TERMS ? rows - first : TERMS, c = 0;
            const float *a = x + first * terms, *b = g + first * columns;
            for (; c + 2 * LANES <= columns; c += 2 * LANES)
                panel(2, a, 1, terms, b + c, columns, some, NULL, 1, out + c, columns, terms);
            for (; c + LANES <= columns; c += LANES)
                panel(1, a, 1, terms, b + c, columns, some, NULL, 1, out + c, columns, terms);
            if (c < columns) {
                packed(b + c, columns, some, columns - c, room, some, LANES);
                panel(1, a, 1, terms, room, LANES, some, NULL, 0, last, LANES, terms);
                for (long k = 0; k < terms; k++)
                    for (long i = c; i < columns; i++) out[k * columns + i] += last[k * LANES + i - c];
            }
            if (sums)
                for (long r = 0; r < some; r++)
                    for (long i = 0; i < columns; i++) sums[i] += b[r * columns + i];
        }
        x += rows * terms, g += rows * columns, out += terms * columns;
        if (sums) sums += columns;
    }
    free(room);
    return 0;
}

/* Streams of a few models, whose rows lie one behind another: group by group, in each of them so many streams
   with so many queries and keys (sizes), and behind the last group rows that are left alone.

   The query in a row sees the keys 0 .. place of its stream or, without places, as many as there are queries up
   to it. Logits are scale q . k - slope (place - key), with no slopes if these are missing; all of them are
   multiplied by log(place + 1) if scaled. Of the heads of a row, each has so many numbers behind the other. */
typedef struct {
    long models, groups, heads, width, query_rows, key_rows, query_stride, key_stride, out_stride;
    const int32_t *sizes, *places;
    const float *slopes;
    float scale;
    int32_t scaled;
} Attention;

/* One stream and head: its first rows, and the first column of the head. */
typedef struct {
    long query, key, queries, keys, head, column;
    const int32_t *place;
} Stream;

typedef void work(const Attention *, const Stream *, float **room, void *arrays);

static void each_stream(const Attention *given, work *work, float **room, const int32_t *counted, void *arrays)
{
    for (long model = 0; model < given->models; model++) {
        long query = model * given->query_rows, key = model * given->key_rows;
        for (long group = 0; group < given->groups; group++) {
            const int32_t *size = given->sizes + 3 * group;
            for (long stream = 0; stream < size[0]; stream++, query += size[1], key += size[2])
                for (long head = 0; head < given->heads; head++) {
                    const int32_t *place = given->places ? given->places + query : counted;
                    Stream one = {query, key, size[1], size[2], head, head * given->width, place};
                    work(given, &one, room, arrays);
                }
        }
    }
}

enum { KEYS_T, VALUES_T, KEYS, QUERIES, OF_OUT, WEIGHTS, OF_LOGITS, MADE, PARTS };

/* Room for the largest stream, and all in whole blocks; calls work on each stream. Returns 0, or 1 if there is no
   memory. */
static int with_room(const Attention *given, work *work, void *arrays)
{
    long queries = 0, keys = 0, wide = up(given->width, LANES);
    for (long group = 0; group < given->groups; group++) {
        const int32_t *size = given->sizes + 3 * group;
        if (size[1] > queries) queries = size[1];
        if (size[2] > keys) keys = size[2];
    }
    queries = up(queries, ROWS);
    keys = up(keys, LANES);
    long numbers[PARTS] = {given->width * keys, given->width * keys, keys * wide,    queries * wide,
                           queries * wide,      queries * keys,      queries * keys, ROWS * wide};
    long all = up(queries, 16);
    for (int part = 0; part < PARTS; part++) all += up(numbers[part], 16);
    float *start = aligned_alloc(64, 4 * all), *room[PARTS];
    if (!start) return 1;
    int32_t *counted = (int32_t *)start;
    for (long a = 0; a < queries; a++) counted[a] = a;
    float *at = start + up(queries, 16);
    for (int part = 0; part < PARTS; part++) {
        room[part] = at;
        at += up(numbers[part], 16);
    }
    each_stream(given, work, room, counted, arrays);
    free(start);
    return 0;
}

/* How many keys so many queries see from this one on. */
INLINE long seen_by(const Stream *stream, long first, long queries)
{
    long seen = 0;
    for (long a = first; a < first + queries; a++) seen = stream->place[a] + 1 > seen ? stream->place[a] + 1 : seen;
    return seen < stream->keys ? seen : stream->keys;
}

/* Products of ROWS queries with so many columns of keys become weights, in place: exp(logit - log), and 0 where
   a query does not see. The logarithm of the sum of exponentials is found unless it is known. */
INLINE void weigh(
    const Attention *given, const Stream *stream, long a, long rows, float *s, long wide, long columns, float *log,
    int known)
{
    ivec lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    for (long r = 0; r < ROWS; r++, s += wide) {
        if (r >= rows) {
            memset(s, 0, 4 * columns);
            continue;
        }
        int32_t place = stream->place[a + r];
        float factor = given->scaled ? logf(place + 1.0f) : 1.0f;
        float slope = given->slopes ? given->slopes[stream->head] * factor : 0.0f;
        vec most = splat(-INFINITY);
        for (long j = 0; j < columns; j += LANES) {
            ivec away = place - (lane + (int32_t)j);
            vec x = load(s + j) * (given->scale * factor);
            if (given->slopes) x -= slope * __builtin_convertvector(away, vec);
            x = choose(away >= 0, x, splat(-INFINITY));
            store(s + j, x);
            if (!known) most = choose(x > most, x, most);
        }
        float shift = known ? log[r] : -INFINITY;
        if (!known)
            for (int i = 0; i < LANES; i++) shift = most[i] > shift ? most[i] : shift;
        vec sums = {0};
        for (long j = 0; j < columns; j += LANES) {
            vec x = load(s + j);
            vec e = choose(x > -INFINITY, exponential(x - shift), splat(0));
            store(s + j, e);
            sums += e;
        }
        if (!known) {
            float sum = total(sums), inverse = 1 / sum;
            for (long j = 0; j < columns; j += LANES) store(s + j, load(s + j) * inverse);
            log[r] = shift + logf(sum);
        }
    }
}

typedef struct {
    const float *query, *key, *value, *of_out;
    float *out, *log, *of_query, *of_key, *of_value; /* log: heads x rows of queries */
} Arrays;

INLINE float *log_of(const Attention *given, const Stream *stream, const Arrays *arrays)
{
    return arrays->log + stream->head * given->models * given->query_rows + stream->query;
}

static void mix(const Attention *given, const Stream *stream, float **room, void *arrays)
{
    const Arrays *all = arrays;
    long width = given->width, wide = up(width, LANES), keys = stream->keys, columns = up(keys, LANES);
    long from = stream->key * given->key_stride + stream->column;
    float *s = room[WEIGHTS], *q = room[QUERIES], *made = room[MADE];
    turned(all->key + from, given->key_stride, keys, width, room[KEYS_T], columns);
    packed(all->value + from, given->key_stride, keys, width, room[KEYS], keys, wide);
    for (long a = 0; a < stream->queries; a += ROWS) {
        long rows = stream->queries - a < ROWS ? stream->queries - a : ROWS, at = stream->query + a;
        long seen = seen_by(stream, a, rows), computed = up(seen, LANES);
        const float *query = all->query + at * given->query_stride + stream->column;
        packed(query, given->query_stride, rows, width, q, ROWS, wide);
        times(q, wide, 1, room[KEYS_T], columns, width, s, columns, computed);
        weigh(given, stream, a, rows, s, columns, computed, log_of(given, stream, all) + a, 0);
        times(s, columns, 1, room[KEYS], wide, seen, made, wide, wide);
        float *out = all->out + at * given->out_stride + stream->column;
        for (long r = 0; r < rows; r++) memcpy(out + r * given->out_stride, made + r * wide, 4 * width);
    }
}

/* With p the weights, o the means and g the gradient of o: dv = p^T g, ds = p (g v^T - g . o), dq = scale ds k,
   dk = scale ds^T q. */
static void mix_back(const Attention *given, const Stream *stream, float **room, void *arrays)
{
    const Arrays *all = arrays;
    long width = given->width, wide = up(width, LANES), keys = stream->keys, columns = up(keys, LANES);
    long own = stream->queries, first_query = stream->query * given->query_stride + stream->column;
    long first_key = stream->key * given->key_stride + stream->column;
    long first_out = stream->query * given->out_stride + stream->column;
    float *q = room[QUERIES], *g = room[OF_OUT], *p = room[WEIGHTS], *ds = room[OF_LOGITS], *made = room[MADE];
    turned(all->key + first_key, given->key_stride, keys, width, room[KEYS_T], columns);
    turned(all->value + first_key, given->key_stride, keys, width, room[VALUES_T], columns);
    packed(all->key + first_key, given->key_stride, keys, width, room[KEYS], keys, wide);
    packed(all->query + first_query, given->query_stride, own, width, q, up(own, ROWS), wide);
    packed(all->of_out + first_out, given->out_stride, own, width, g, up(own, ROWS), wide);
    for (long a = 0; a < own; a += ROWS) {
        long rows = own - a < ROWS ? own - a : ROWS, seen = seen_by(stream, a, rows);
        long computed = up(seen, LANES);
        float *p_a = p + a * columns, *ds_a = ds + a * columns;
        times(q + a * wide, wide, 1, room[KEYS_T], columns, width, p_a, columns, computed);
        weigh(given, stream, a, rows, p_a, columns, computed, log_of(given, stream, all) + a, 1);
        times(g + a * wide, wide, 1, room[VALUES_T], columns, width, ds_a, columns, computed);
        for (long r = 0; r < ROWS; r++) {
            float *p_r = p_a + r * columns, *ds_r = ds_a + r * columns, along = 0, factor = given->scale;
            if (r < rows) {
                const float *o = all->out + first_out + (a + r) * given->out_stride, *g_r = g + (a + r) * wide;
                for (long i = 0; i < width; i++) along += o[i] * g_r[i];
                if (given->scaled) factor *= logf(stream->place[a + r] + 1.0f);
            }
            for (long j = 0; j < computed; j += LANES)
                store(ds_r + j, load(p_r + j) * (load(ds_r + j) - along) * factor);
            memset(p_r + computed, 0, 4 * (columns - computed));
            memset(ds_r + computed, 0, 4 * (columns - computed));
        }
        times(ds_a, columns, 1, room[KEYS], wide, seen, made, wide, wide);
        float *of_query = all->of_query + first_query + a * given->query_stride;
        for (long r = 0; r < rows; r++) memcpy(of_query + r * given->query_stride, made + r * wide, 4 * width);
    }
    for (long j = 0, from = 0; j < keys; j += ROWS) {
        long rows = keys - j < ROWS ? keys - j : ROWS, to = first_key + j * given->key_stride;
        while (from < own && stream->place[from] < j) from++; /* those see none of these keys */
        times(p + from * columns + j, 1, columns, g + from * wide, wide, own - from, made, wide, wide);
        for (long r = 0; r < rows; r++)
            memcpy(all->of_value + to + r * given->key_stride, made + r * wide, 4 * width);
        times(ds + from * columns + j, 1, columns, q + from * wide, wide, own - from, made, wide, wide);
        for (long r = 0; r < rows; r++)
            memcpy(all->of_key + to + r * given->key_stride, made + r * wide, 4 * width);
    }
}

/* Means of the values, and the logarithms of the sums of exponentials, by head and row of a query. Returns 0, or
   1 if there is no memory. */
int attend(
    const Attention *given, const float *query, const float *key, const float *value, float *out, float *log)
{
    Arrays arrays = {.query = query, .key = key, .value = value, .out = out, .log = log};
    return with_room(given, mix, &arrays);
}

/* The gradients of queries, keys and values, which lie like these. */
int attend_back(
    const Attention *given, const float *query, const float *key, const float *value, const float *out,
    const float *log, const float *of_out, float *of_query, float *of_key, float *of_value)
{
    Arrays arrays = {query, key, value, of_out, (float *)out, (float *)log, of_query, of_key, of_value};
    return with_room(given, mix_back, &arrays);
}
