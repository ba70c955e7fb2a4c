// The thread that owns one engine: a queue in front, promises settled on the JavaScript thread.
//
// Rules of lifetime:
//  1. Only the JavaScript thread makes, reads or destroys a Napi value.
//  2. The ThreadSafeFunction is born referenced; it is unreferenced at once, and referenced only while work is pending: so
//     the process lives just as long as there is something to wait for.
//  3. The thread is joined on the JavaScript thread: after it said that it ends (`stop`), or in the environment's cleanup hook,
//     which runs before the ThreadSafeFunction goes.
//  4. The ThreadSafeFunction owns the EngineThread (a shared_ptr freed by its finalizer): a late call finds it alive. The Engine is
//     opened and freed by its own thread.
//  5. Nothing throws out of a task: what was thrown becomes the promise's rejection.
//  6. What a task reads in place is kept by a reference of the task's. It is let go on the JavaScript thread: when the promise is
//     settled, or in the cleanup hook once the thread has been joined; never by the task's destructor, which may run on either. So are
//     who is told of tokens, and what he throws.
//
// Order: tasks run as they came. Samples that stand together run together, and a later task waits until they are done, so
// the weights never change under a completion. What only scores neither holds up samples nor waits until they are done, where the engine
// can do that: samples have two thirds of the time, and on the CPU their steps run between the operations of one score.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "binding/engine_request.h"
#include "binding/environment.h"

namespace gigpo {

// Work for the engine's thread. It may look at the flag, and throw Error ABORTED once it is set.
using Work = std::function<MakeResult(Engine& engine, const std::atomic<bool>& cancelled)>;

class EngineThread : public std::enable_shared_from_this<EngineThread> {
 public:
  // The thread opens the engine; where that fails, all that it is asked for fails with that error.
  static std::shared_ptr<EngineThread> create(Napi::Env env, EngineRequest request);

  // Both return { promise, cancel() }, and throw DISPOSED after `stop`. `read` is an object whose arrays the work reads in place.
  // `scores`: it changes nothing.
  Napi::Value start(Napi::Env env, Work work, const Napi::Object& read = {}, bool scores = false);
  // `on_tokens`, which may be empty, is called with the tokens that were read since it was called last: once for a step, or for several
  // where JavaScript is busy, which holds up nobody else. It ends the completion by returning true, and fails it by throwing.
  Napi::Value start_sampling(Napi::Env env, SampleRequest request, const Napi::Function& on_tokens);
  // Rejects what is queued, lets what runs end at its next look at the flag, and frees the engine. The promise resolves when
  // the thread is gone; a finalizer, which may not touch JavaScript, calls `request_stop` alone.
  Napi::Value stop(Napi::Env env);
  void request_stop();

  // Undefined until the engine is open.
  std::optional<MemoryPlan> plan();
  bool deterministic();
  std::shared_ptr<const GeneratorCounts> counts();

 private:
  struct Task {
    std::optional<Napi::Promise::Deferred> deferred;
    Work work;              // empty for sampling
    bool scores = false;
    Napi::ObjectReference read;
    SampleRequest request;  // for sampling, as are the next five
    Napi::FunctionReference on_tokens;
    std::optional<Napi::Error> thrown;   // by it
    bool told_of = false;               // whether anybody wants to know
    std::vector<int32_t> untold;        // tokens; under the mutex
    std::atomic<bool> suffices = false;  // no more are needed
    std::atomic<bool> cancelled = false;
    bool queued = true;  // false once it was taken, or cancelled before; under the mutex
    std::string error_code, error_message;
    MakeResult result;
    bool last = false;  // the thread has nothing more to say
  };
  using TaskPointer = std::shared_ptr<Task>;
  using Clock = std::chrono::steady_clock;

  explicit EngineThread(EngineRequest request) : request_(std::move(request)) {}

  // JavaScript thread.
  Napi::Value enqueue(Napi::Env env, TaskPointer task);
  void cancel(const TaskPointer& task);
  void tell(Napi::Env env, const TaskPointer& task, std::vector<int32_t> tokens);
  void join(Napi::Env env);
  static void let_go(const std::vector<TaskPointer>& settled);
  static void keep_promise(Napi::Env env, Task& task);
  static void settle_all(Napi::Env env, Napi::Function, std::shared_ptr<EngineThread>* self, void*);
  static void clean_up(void* self);

  // Engine thread.
  void loop();
  void open();
  void take_in(std::unique_lock<std::mutex>& lock);
  TaskPointer next_task();                                  // under the mutex
  TaskPointer take_first(std::deque<TaskPointer>& from);    // under the mutex; null where it was cancelled
  void score(const TaskPointer& task);
  bool give_way(const Task& score);
  bool sampling() const { return engine_ && engine_->sampling(); }
  void catch_up();
  void run(const TaskPointer& task);
  void sample_step();
  void end_early();
  void publish_tokens();
  void complete(std::vector<Completion> done);
  void fail(const TaskPointer& task, const char* code, const std::string& message);
  void settle(TaskPointer task);
  bool stopping();

  using Wake = Napi::TypedThreadSafeFunction<std::shared_ptr<EngineThread>, void, &EngineThread::settle_all>;

  EngineRequest request_;
  std::unique_ptr<Engine> engine_;  // engine thread only, as are the next two
  std::string open_error_code_, open_error_message_;
  Wake wake_;
  int64_t pending_ = 0;                         // JavaScript thread only, as is the next
  std::vector<Napi::Promise::Deferred> stops_;  // dispose() may be called more than once
  std::atomic<bool> interruptions_ = false;     // some completion under way was cancelled, or needs no more tokens

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TaskPointer> queue_;
  std::vector<TaskPointer> settled_, streams_;  // the second have tokens untold
  TaskPointer running_;
  bool stopping_ = false;
  std::optional<MemoryPlan> plan_;
  bool deterministic_ = false;
  std::shared_ptr<const GeneratorCounts> counts_ = std::make_shared<GeneratorCounts>();

  std::unordered_map<uint64_t, TaskPointer> sampling_;  // engine thread only, as is all below
  std::vector<std::pair<TaskPointer, int32_t>> read_;   // of the step at hand, for those who are told
  uint64_t next_id_ = 1;
  std::deque<TaskPointer> scores_;      // taken in, but not begun
  Clock::duration owed_{};              // time that samples have before the next piece of a score
  Clock::time_point scored_, sampled_;  // when the piece of a score at hand began, and the last step of samples ended

  std::thread thread_;
};

}  // namespace gigpo
