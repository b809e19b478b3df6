/* wirecall.h: the C interface (C99) of libwirecall-c. Servers, brokers and clients, and handlers written in C.
 *
 * Types are opaque, but for structs that begin with their size: set it to sizeof of the struct, so that a program that
 * was compiled with an older header goes on working with a newer library. Later versions append members, which mean
 * what they meant without them where they are 0 or NULL.
 *
 * Ownership. What a function whose name ends in _new, _start, _subscribe, _defer or _call returns belongs to the caller,
 * who gives it back to the _free or _release beside it; NULL may be given back as well. A `const` pointer that a function
 * returns or fills in belongs to the library, and lasts as its comment says. Pointers that are given to a function are
 * the caller's, and are not used after it has returned, but for `user`, which is handed to the function beside it. Where
 * a comment does not allow NULL, it is WC_ERROR_ARGUMENT; of a call that is served, -32603 to its caller as well.
 *
 * Text. `const char *` without a size is UTF-8 that ends in NUL. Text with a size beside it may hold NUL bytes, and does
 * not end in one where nothing says so. JSON text with a size is one JSON value.
 *
 * Errors. A function that returns int returns WC_OK, a WC_ERROR_ code, or, where a call, a registration or a subscription
 * has failed, the code of its JSON-RPC error (docs/errors.md). One that returns a pointer returns NULL, and
 * wc_last_status() has the code. wc_last_error() has the reason as text. No C++ exception leaves the library.
 *
 * Threads. Each function says which thread may call it. "Any": at any time, several at once. Full text: docs/c.md. */
#ifndef WIRECALL_H
#define WIRECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WC_API __attribute__((visibility("default")))
#else
#define WC_API
#endif

/* ---- versions and errors ---- */

/* The version of the binary interface that this header describes. It grows when something is added, and a library serves
 * all programs whose number is not higher than its own. What breaks programs changes the library's name as well. */
#define WC_ABI_VERSION 1

/* The WC_ABI_VERSION of the library that is loaded. Any thread. */
WC_API uint32_t wc_abi_version(void);
/* The library's version, as "0.1.0". Any thread. */
WC_API const char *wc_version(void);

enum {
  WC_OK = 0,
  WC_ERROR_MEMORY = -1,   /* no memory was left; nothing else has changed */
  WC_ERROR_ARGUMENT = -2, /* an argument is invalid: options, a name, a URI, JSON text */
  WC_ERROR_SYSTEM = -3,   /* the system has refused: an address in use, no descriptors left */
  WC_ERROR_STATE = -4,    /* the function cannot be called now */
  WC_ERROR_INTERNAL = -5  /* anything else; a mistake of the library's */
};

/* The code of the last function that has failed on this thread; WC_OK for none. Any thread. */
WC_API int wc_last_status(void);
/* Why it failed: at most 511 bytes of text, empty for none; for an error of JSON-RPC its message, and after ": " its data
 * as JSON text. It lasts until the next failure on this thread. Any thread. */
WC_API const char *wc_last_error(void);

/* ---- handlers ---- */

/* A call that a handler serves. The handler's own until it returns; what wc_call_defer returns is its owner's. Thread:
 * one at a time, but for answers, which may race: the first stands. */
typedef struct wc_call wc_call;

/* Serves one call: reads parameters, and gives a result or an error. Without either the result is null. It runs on a
 * thread of the server, several at once where options.thread_count is above 1. It must not throw or longjmp out. */
typedef void (*wc_handler)(wc_call *call, void *user);

/* Parameters. `index` is the position, from 0, and `name` the name by which callers may give it instead; NULL for a
 * parameter that has no name. Each returns true, or false once the call has failed: a parameter that is missing or of
 * another type has set the call's error to -32602 (data: {"loc","expected","got"}), so that the handler can just return.
 * `out` is not written then. Nothing is allocated, but where strings or names have escapes: these are unescaped into
 * memory that the thread keeps; and for an index of more than 32 members, where they are asked for in another order than
 * they were sent in. Such a call has at most 65536 members, else it is -32602.
 * Integers are exact over 64 bits; 1.0 and 1e3 are integers; nothing else is converted to another type. */
WC_API bool wc_param_i64(wc_call *call, size_t index, const char *name, int64_t *out);
WC_API bool wc_param_u64(wc_call *call, size_t index, const char *name, uint64_t *out);
WC_API bool wc_param_f64(wc_call *call, size_t index, const char *name, double *out);
WC_API bool wc_param_bool(wc_call *call, size_t index, const char *name, bool *out);
/* The text lasts as long as the call. It is a view into the message where it has no escapes. */
WC_API bool wc_param_text(wc_call *call, size_t index, const char *name, const char **text, size_t *size);
/* Binary data: {"$bytes":"<base64>"} in JSON. It lasts as long as the call. */
WC_API bool wc_param_bytes(wc_call *call, size_t index, const char *name, const void **bytes, size_t *size);
/* Any value, as JSON text that lasts as long as the call. */
WC_API bool wc_param_json(wc_call *call, size_t index, const char *name, const char **json, size_t *size);

/* The same for optional parameters: where one is not given, or is null, they return true and do not write `out`, which
 * then has the default that the handler has put there. */
WC_API bool wc_param_opt_i64(wc_call *call, size_t index, const char *name, int64_t *out);
WC_API bool wc_param_opt_u64(wc_call *call, size_t index, const char *name, uint64_t *out);
WC_API bool wc_param_opt_f64(wc_call *call, size_t index, const char *name, double *out);
WC_API bool wc_param_opt_bool(wc_call *call, size_t index, const char *name, bool *out);
WC_API bool wc_param_opt_text(wc_call *call, size_t index, const char *name, const char **text, size_t *size);
WC_API bool wc_param_opt_bytes(wc_call *call, size_t index, const char *name, const void **bytes, size_t *size);
WC_API bool wc_param_opt_json(wc_call *call, size_t index, const char *name, const char **json, size_t *size);
/* Whether it is given and not null. Sets no error. */
WC_API bool wc_param_given(wc_call *call, size_t index, const char *name);

/* A cursor over the elements of an array or the members of an object. Declare it as `wc_cursor c = WC_CURSOR_INIT;`. It
 * lasts as long as its call or reply, whose other values may be read in between. A cursor within a cursor is opened at
 * the outer one's current value. All of a value is walked in one pass over it, however deep it is; a cursor that is left
 * before its end costs one more pass over what it is in. All members but `size` are the library's. */
typedef struct wc_cursor {
  size_t size;
  void *source;
  const char *name;
  const char *root;
  const char *begin;
  const char *value;
  const char *key;
  size_t key_size;
  int state;
} wc_cursor;
#define WC_CURSOR_INIT {sizeof(wc_cursor), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0}

/* Open `cursor` at a parameter, before its first element or member. `name`, where given, lasts as long as the cursor. */
WC_API bool wc_param_array(wc_call *call, size_t index, const char *name, wc_cursor *cursor);
WC_API bool wc_param_object(wc_call *call, size_t index, const char *name, wc_cursor *cursor);
/* Moves to the next value. False after the last, and once the call has failed. */
WC_API bool wc_cursor_next(wc_cursor *cursor);
/* The name of the current member; it lasts as long as the call. False, and nothing, in an array. */
WC_API bool wc_cursor_key(wc_cursor *cursor, const char **key, size_t *size);
/* Whether the current value is null. */
WC_API bool wc_cursor_is_null(wc_cursor *cursor);
/* Read the current value, as often as wanted; as wc_param_. A value of another type has set the call's error. Of a reply
 * wc_last_error() has where and what it is, and all cursors go on. WC_ERROR_STATE where the cursor is at no value. */
WC_API bool wc_cursor_i64(wc_cursor *cursor, int64_t *out);
WC_API bool wc_cursor_u64(wc_cursor *cursor, uint64_t *out);
WC_API bool wc_cursor_f64(wc_cursor *cursor, double *out);
WC_API bool wc_cursor_bool(wc_cursor *cursor, bool *out);
WC_API bool wc_cursor_text(wc_cursor *cursor, const char **text, size_t *size);
WC_API bool wc_cursor_bytes(wc_cursor *cursor, const void **bytes, size_t *size);
WC_API bool wc_cursor_json(wc_cursor *cursor, const char **json, size_t *size);
WC_API bool wc_cursor_array(wc_cursor *cursor, wc_cursor *inner);
WC_API bool wc_cursor_object(wc_cursor *cursor, wc_cursor *inner);

/* What a caller gives beyond the parameters that the handler asks for is -32602 as well: at the latest when it answers.
 * A handler that changes something asks here first: false, and -32602, where there is more than it has asked for. Not
 * needed for methods whose parameters are declared (wc_method). */
WC_API bool wc_params_end(wc_call *call);
/* From now on the caller may give more than the handler asks for. */
WC_API void wc_params_allow_more(wc_call *call);

/* Answers. The first answer of a call stands, and later ones have no effect; a call whose parameters have failed has its
 * answer. The text of a value that is not UTF-8, or no JSON, makes the answer -32603, and the log says why; so do
 * infinities and NaN in JSON. */
WC_API void wc_result_null(wc_call *call);
WC_API void wc_result_bool(wc_call *call, bool value);
WC_API void wc_result_i64(wc_call *call, int64_t value);
WC_API void wc_result_u64(wc_call *call, uint64_t value);
WC_API void wc_result_f64(wc_call *call, double value);
WC_API void wc_result_text(wc_call *call, const char *text, size_t size);
WC_API void wc_result_bytes(wc_call *call, const void *bytes, size_t size);
WC_API void wc_result_json(wc_call *call, const char *json, size_t size);
/* `data_json` is JSON text, or NULL for none. The code stands whatever else is given: data that is no JSON is left out,
 * and what is no UTF-8 in the message is replaced. */
WC_API void wc_error(wc_call *call, int code, const char *message, const char *data_json);

/* The call. The texts last as long as the call. */
WC_API const char *wc_call_method(wc_call *call);
/* Its id as JSON text; NULL for a notification, whose answer is not sent. */
WC_API const char *wc_call_id(wc_call *call);
/* The caller's name at a broker; empty for none. */
WC_API const char *wc_call_caller(wc_call *call);
/* Whether nobody waits for the answer any more: the call was cancelled, its deadline has passed, or its caller has gone. */
WC_API bool wc_call_cancelled(wc_call *call);
/* Nanoseconds until the caller's deadline, 0 once it has passed; INT64_MAX without one. */
WC_API int64_t wc_call_remaining_ns(wc_call *call);

/* Leaves the answer to somebody else, who gives it later, on any thread, by the functions above. What is returned has a
 * copy of the parameters, and belongs to the caller; answers to `call` itself have no effect from now on. NULL, and the
 * call is answered -32603, when no memory is left. In a handler of a blocking method, which has a copy already, `call`
 * itself is returned: it goes on being answered by either pointer, and outlives the handler until it is released. Then the handler reads no
 * more parameters once it has handed the pointer to another thread, which may read them. */
WC_API wc_call *wc_call_defer(wc_call *call);
/* Gives back what wc_call_defer has returned. A call that has no answer by then is answered -32603. Any thread. */
WC_API void wc_call_release(wc_call *deferred);

/* ---- methods ---- */

typedef enum wc_type {
  WC_JSON = 0, /* any value */
  WC_I64,
  WC_U64,
  WC_F64,
  WC_BOOL,
  WC_TEXT,
  WC_BYTES,
  WC_ARRAY,
  WC_OBJECT
} wc_type;

/* A parameter that is declared: callers see it in rpc.discover, and it is checked before the handler runs. */
typedef struct wc_param {
  size_t size;
  const char *name;
  wc_type type;
  bool optional;
  const char *description; /* NULL for none */
} wc_param;

typedef struct wc_method {
  size_t size;
  const char *name;
  wc_handler handler;
  void *user;
  void (*free_user)(void *user); /* called once when nothing uses `user` any more; NULL for nothing */
  const char *summary;           /* one sentence for listings; NULL for none */
  const wc_param *params;        /* at most 63, each of the size of the first; NULL for parameters that the handler knows */
  size_t param_count;            /* with `params` not NULL, 0 declares that there are none */
  bool safe;                     /* it changes nothing, so that it may be called by HTTP GET */
  bool blocking;                 /* the handler waits or computes for long: it runs on a thread of a pool */
} wc_method;

/* ---- logs ---- */

enum { WC_LOG_DEBUG = 0, WC_LOG_INFO, WC_LOG_WARNING, WC_LOG_ERROR };

typedef struct wc_log_record {
  size_t size;
  int level;
  const char *message;
  const char *json; /* the whole record: an object of time, level, message and what belongs to it */
} wc_log_record;

/* Receives records. The record lasts until it returns. Any thread calls it, several at once. */
typedef void (*wc_log_function)(const wc_log_record *record, void *user);
/* A log function that writes one line a record to stderr: time, level, message, and what belongs to it as name=value;
 * `user` is not used. */
WC_API void wc_log_stderr(const wc_log_record *record, void *user);

/* ---- servers and brokers ---- */

typedef struct wc_server wc_server;

/* A server; wc_broker_new: one whose clients provide methods to each other (docs/broker.md). `options_json` is an object
 * of the options in docs/options.md; NULL for the defaults. */
WC_API wc_server *wc_server_new(const char *options_json);
WC_API wc_server *wc_broker_new(const char *options_json);
/* Not while it runs, or handles a message: then it has no effect but WC_ERROR_STATE. */
WC_API void wc_server_free(wc_server *server);

/* What is to be done before it runs is WC_ERROR_STATE later, and in a handler. */

/* Where its log goes; nowhere before, and with NULL. Before it runs. */
WC_API int wc_server_log(wc_server *server, wc_log_function log, void *user);
/* Adds a method. -32007: the name is taken. Before it runs. */
WC_API int wc_server_method(wc_server *server, const char *name, wc_handler handler, void *user);
/* The same with all that can be said of it. On failure free_user is not called. */
WC_API int wc_server_add(wc_server *server, const wc_method *method);
/* Listens at a URI, as "tcp://127.0.0.1:8545" or "unix:///run/calc.sock", so that clients can connect; wc_server_run
 * serves them. Before it runs, for each URI once. */
WC_API int wc_server_listen(wc_server *server, const char *uri);
/* The URI of the `index`-th endpoint at which it listens, with its port in numbers; NULL beyond the last. It lasts as
 * long as the server. */
WC_API const char *wc_server_endpoint(wc_server *server, size_t index);
/* Serves on this thread until wc_server_stop, SIGINT or SIGTERM, and ends when the calls in progress have been answered.
 * Once: WC_ERROR_STATE for a server that runs or has run. */
WC_API int wc_server_run(wc_server *server);
/* The same, but leaves signals to the program. */
WC_API int wc_server_run_without_signals(wc_server *server);
/* Makes wc_server_run end, also one that is yet to begin. Any thread. */
WC_API void wc_server_stop(wc_server *server);
/* Serves one message or batch, as text in memory. `*reply` is the reply, which ends in NUL and lasts until the next call
 * of this function, and `*reply_size` its size, 0 where no reply is due. A call that is deferred, and has no answer when
 * its handler returns, is answered -32800. WC_ERROR_STATE within a handler of such a message. Not while the server runs;
 * thread: one at a time. */
WC_API int wc_server_handle(wc_server *server, const char *message, size_t size, const char **reply, size_t *reply_size);

/* ---- modules ---- */

/* What a shared library exports, under the name wirecall_module, to be loaded by a server that others run. It needs no
 * library of ours: whoever loads it has these functions. `WC_MODULE = {sizeof(wc_module), WC_ABI_VERSION, load};` */
typedef struct wc_module {
  size_t size;
  uint32_t abi_version;
  /* Adds the module's methods, by wc_server_method and wc_server_add; every other function of `server`, which lasts until
   * it returns, is WC_ERROR_STATE. Returns WC_OK, or the code with which it has failed: then the server is not to be run. */
  int (*load)(wc_server *server);
} wc_module;
#define WC_MODULE                        \
  WC_API extern const wc_module wirecall_module; \
  const wc_module wirecall_module

/* Loads a module and adds its methods. `path` has a slash, and comes from whoever runs the program: a module can do all
 * that the program can. A file that others than root and this user may write, or replace, is refused. Libraries that it
 * names by $ORIGIN are beside it. It is never unloaded. Before the server runs. */
WC_API int wc_server_load(wc_server *server, const char *path);

/* ---- clients ---- */

typedef struct wc_client wc_client;

/* A client of the server at `uri` (docs/client.md). It connects when it is first used. `options_json` is an object of
 * the client's options in docs/options.md; NULL for the defaults. */
WC_API wc_client *wc_client_new(const char *uri, const char *options_json);
/* Ends its calls, which fail with -32001, and waits for its callbacks. Not within one of them. */
WC_API void wc_client_free(wc_client *client);
/* Where its log goes; nowhere before, and with NULL. WC_ERROR_STATE once the client has been used. */
WC_API int wc_client_log(wc_client *client, wc_log_function log, void *user);
/* Connects now, and waits until the server has accepted what is provided and subscribed to. Any thread. */
WC_API int wc_client_connect(wc_client *client);

/* The outcome of a call: a result or an error. */
typedef struct wc_reply wc_reply;

typedef struct wc_call_options {
  size_t size;
  int64_t timeout_ms; /* 0 for the client's call_timeout_ms; below 0 the time is up at once */
  const char *to;     /* at a broker: the provider of that name and no other; NULL for any */
  bool idempotent;    /* the method may run several times for this call */
  wc_call *within;    /* the call that a handler serves: its deadline and cancellation are this call's as well; or NULL */
} wc_call_options;

/* Calls a method, and waits for its outcome. `params_json` is an array or an object; NULL for none. `options` may be
 * NULL. The reply, of an error as well, is the caller's; NULL when no memory is left. Any thread, but not a callback or
 * handler of this client: there the reply is -32603 at once. */
WC_API wc_reply *wc_client_call(wc_client *client, const char *method, const char *params_json,
                                const wc_call_options *options);

/* A call that has been started. */
typedef struct wc_pending wc_pending;
/* Receives the outcome, once, on the client's own thread. The reply lasts until it returns. */
typedef void (*wc_reply_function)(const wc_reply *reply, void *user);
/* Starts a call, and returns. `*pending`, where `pending` is not NULL, is the caller's, and may be freed at any time.
 * Any thread. */
WC_API int wc_client_start(wc_client *client, const char *method, const char *params_json,
                           const wc_call_options *options, wc_reply_function done, void *user, wc_pending **pending);
/* Cancels the call: `done` is given -32800. False where it has ended already. Any thread. */
WC_API bool wc_pending_cancel(wc_pending *pending);
WC_API void wc_pending_free(wc_pending *pending);
/* Sends a notification, which has no answer; returns when the kernel has accepted it. Any thread. */
WC_API int wc_client_notify(wc_client *client, const char *method, const char *params_json);

/* 0 for a result, else the error's code; WC_ERROR_INTERNAL for an error whose code is 0. */
WC_API int wc_reply_error(const wc_reply *reply);
/* The error's message; empty for a result. It lasts as long as the reply, as all of it does. */
WC_API const char *wc_reply_message(const wc_reply *reply);
/* The error's data as JSON text; NULL for none. */
WC_API const char *wc_reply_data(const wc_reply *reply);
/* The result as JSON text that ends in NUL; NULL for an error. `size` may be NULL. */
WC_API const char *wc_reply_json(const wc_reply *reply, size_t *size);
/* The result as a value of that type. False, and wc_last_error() says why, where it is none; for an error as well. */
WC_API bool wc_reply_i64(const wc_reply *reply, int64_t *out);
WC_API bool wc_reply_u64(const wc_reply *reply, uint64_t *out);
WC_API bool wc_reply_f64(const wc_reply *reply, double *out);
WC_API bool wc_reply_bool(const wc_reply *reply, bool *out);
WC_API bool wc_reply_text(const wc_reply *reply, const char **text, size_t *size);
WC_API bool wc_reply_bytes(const wc_reply *reply, const void **bytes, size_t *size);
WC_API bool wc_reply_array(const wc_reply *reply, wc_cursor *cursor);
WC_API bool wc_reply_object(const wc_reply *reply, wc_cursor *cursor);
WC_API void wc_reply_free(wc_reply *reply);

/* At a broker. Returns at once; from then on the client keeps connected. wc_client_connect has the broker's refusal.
 * `options_json` is an object of concurrency, queue, policy and idempotent (docs/client.md); NULL for the defaults. The
 * handler runs on the client's own thread, that of a blocking method on one of its pool's. Any thread. */
WC_API int wc_client_provide(wc_client *client, const wc_method *method, const char *options_json);
/* WC_ERROR_ARGUMENT: it provides none of that name. Any thread. */
WC_API int wc_client_unprovide(wc_client *client, const char *name);

typedef struct wc_subscription wc_subscription;
/* Receives an event, on the client's own thread: its topic, and its value as JSON text that ends in NUL. Both last until
 * it returns. */
typedef void (*wc_event_function)(const char *topic, const char *json, size_t size, void *user);
/* Subscribes to a topic (`*` for one word, a last `>` for one or more). `options_json` is an object of group, echo and
 * last (docs/client.md); NULL for the defaults. Any thread. */
WC_API wc_subscription *wc_client_subscribe(wc_client *client, const char *topic, const char *options_json,
                                            wc_event_function function, void *user);
/* Ends it: `function` does not run any more when this returns. Any thread. */
WC_API void wc_subscription_free(wc_subscription *subscription);
/* Publishes a value; `json` NULL for none. `retain`: the broker keeps it for later subscribers. `*receivers`, where it is
 * not NULL, becomes the number of connections that it was queued to. Any thread. */
WC_API int wc_client_publish(wc_client *client, const char *topic, const char *json, bool retain, size_t *receivers);

#ifdef __cplusplus
}
#endif

#endif
