#include "binding/engine_object.h"

#include "binding/critic_object.h"
#include "binding/engine_request.h"
#include "binding/grammar_object.h"

namespace gigpo {

static Key key_of(const Napi::Value& value) {
  const Napi::Object words = object(value, "key");
  const auto word = [&](uint32_t index) { return uint32_t(integer(words.Get(index), "A word of the key")); };
  return {word(0), word(1)};
}

TrainingBatch training_batch(const Napi::Object& object) {
  const auto length = [&](const char* name) { return int64_t(typed_array<int32_t>(object.Get(name), name).ElementLength()); };
  const auto integers = [&](const char* name, int64_t count) { return elements<int32_t>(object, name, count); };
  TrainingBatch batch;
  batch.rows = length("rowOffsets") - 1;
  batch.spans = length("spanRows");
  if (batch.rows < 0) refuse("rowOffsets is empty.");
  batch.row_offsets = integers("rowOffsets", batch.rows + 1);
  batch.tokens = integers("tokens", batch.row_offsets[batch.rows]);
  batch.span_rows = integers("spanRows", batch.spans);
  batch.span_begins = integers("spanBegins", batch.spans);
  batch.span_counts = integers("spanCounts", batch.spans);
  const int64_t sampled = batch.sampled();
  if (sampled > batch.row_offsets[batch.rows]) refuse("spanCounts has more tokens than the rows.");  // numbers below are products of it
  const auto floats = [&](const char* name) { return optional_elements<float>(object, name, sampled); };
  batch.advantages = floats("advantages");
  batch.old_log_probs = floats("oldLogProbs");
  batch.reference_log_probs = floats("referenceLogProbs");
  batch.gradients = floats("coefficients");
  batch.entropy_gradients = floats("entropyCoefficients");
  batch.returns = floats("returns");
  batch.old_values = floats("oldValues");
  if (object.Get("topCount").IsUndefined()) return batch;
  batch.top = integer(object, "topCount");
  if (batch.top < 1 || batch.top > INT32_MAX) refuse("topCount must be at least 1.");
  batch.top_tokens = optional_elements<int32_t>(object, "topTokens", sampled * batch.top);
  batch.top_gradients = optional_elements<float>(object, "topCoefficients", sampled * batch.top);
  return batch;
}

// Converts a NativeImage of src/native.ts. Its values are read and copied only if no image with its hash is known.
static std::shared_ptr<const Image> image_of(const Napi::Value& value) {
  const Napi::Object given = object(value, "An image");
  const auto image = std::make_shared<Image>();
  const Napi::Value hash = given.Get("hash"), grid = given.Get("grid");
  if (!hash.IsString()) refuse("The hash of an image must be a string.");
  image->hash = hash.As<Napi::String>();
  const std::vector<int32_t> extents = copy_of<int32_t>(grid, "The grid of an image");
  if (extents.size() != 3) refuse("The grid of an image must have three numbers.");
  std::copy(extents.begin(), extents.end(), image->grid.begin());
  KnownImages& images = value.Env().GetInstanceData<AddonState>()->images;
  if (auto known = images.find(image->hash, image->grid)) return known;
  const TypedArray<float> patches = typed_array<float>(given.Get("patches"), "The patches of an image");
  image->values.assign(patches.Data(), patches.Data() + patches.ElementLength());
  images.keep(image);
  return image;
}

static std::vector<std::shared_ptr<const Image>> image_list(const Napi::Value& value) {
  std::vector<std::shared_ptr<const Image>> images;
  if (value.IsUndefined()) return images;
  if (!value.IsArray()) refuse("images must be a list.");
  for (uint32_t i = 0; i < value.As<Napi::Array>().Length(); i++) images.push_back(image_of(value.As<Napi::Array>().Get(i)));
  return images;
}

std::shared_ptr<const BatchImages> images_of_batch(TrainingBatch& batch, const Napi::Object& object) {
  const auto images = std::make_shared<BatchImages>();
  images->images = image_list(object.Get("images"));
  if (images->images.empty()) return nullptr;
  images->offsets = copy_of<int32_t>(object.Get("imageOffsets"), "imageOffsets");
  images->indices = copy_of<int32_t>(object.Get("imageIndices"), "imageIndices");
  images->check(batch.rows);
  batch.given_images = images.get();
  return images;
}

// Constraint of each span, to be kept until the work is done. Empty if the batch has no constraints.
using Constraints = std::shared_ptr<std::vector<std::shared_ptr<TokenMasks>>>;
static Constraints constrain(TrainingBatch& batch, const Napi::Object& object) {
  const auto constraints = std::make_shared<Constraints::element_type>();
  const Napi::Value given = object.Get("constraints");
  if (given.IsUndefined()) return constraints;
  if (!given.IsArray() || given.As<Napi::Array>().Length() != size_t(batch.spans)) refuse("constraints must be a list with one entry per span.");
  for (uint32_t span = 0; span < uint32_t(batch.spans); span++) {
    const Napi::Value one = given.As<Napi::Array>().Get(span);
    constraints->push_back(one.IsUndefined() ? nullptr : masks_of(one));
  }
  batch.constraints = constraints->data();
  return constraints;
}

// Converts a NativeTrainingLoss of src/native.ts.
static TrainingLoss training_loss(const Napi::Object& object, const TrainingBatch& batch) {
  TrainingLoss loss;
  loss.head.mode = choice<HeadMode>(
      object, "mode", {{"policy", HeadMode::policy}, {"sft", HeadMode::sft}, {"linear", HeadMode::linear}});
  loss.head.temperature = number(object, "temperature");
  const auto require = [&](const float* column, const char* name) {
    if (!column) refuse(std::string("This loss needs ") + name + ".");
  };
  if (loss.head.mode == HeadMode::linear) {
    require(batch.gradients, "coefficients");
    if (batch.top > 0) require(batch.top_gradients, "topCoefficients");
    if (batch.top > 0 && !batch.top_tokens) refuse("This loss needs topTokens.");
    loss.head.has_entropy_gradient = batch.entropy_gradients != nullptr;
  }
  if (loss.head.mode != HeadMode::linear && batch.top > 0) refuse("Only a linear loss supports other tokens.");
  if (loss.head.mode != HeadMode::policy) return loss;
  require(batch.advantages, "advantages");
  require(batch.old_log_probs, "oldLogProbs");
  loss.head.loss = policy_loss_options(object);
  if (loss.head.loss.kl_weight != 0) require(batch.reference_log_probs, "referenceLogProbs");
  loss.head.has_reference = batch.reference_log_probs != nullptr;
  loss.head.entropy_weight = number(object, "entropyWeight");
  loss.aggregation = aggregation_of(object);
  loss.fixed_length = fixed_length_of(object, loss.aggregation);
  loss.ratio = ratio_of(object);
  loss.unit = choice<Unit>(object, "unit", {{"completion", Unit::segment}, {"conversation", Unit::sequence}});
  loss.skip_zero_advantage = boolean(object, "skipZeroAdvantage");
  return loss;
}

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(env, "Engine",
                     with_learner({accessor<&EngineObject::plan>("plan"),
                                   accessor<&EngineObject::deterministic>("deterministic"),
                                   accessor<&EngineObject::statistics>("statistics"),
                                   method<&EngineObject::initialize>("initialize"),
                                   method<&EngineObject::freeze_reference>("freezeReference"),
                                   method<&EngineObject::sample>("sample"),
                                   method<&EngineObject::logits>("logits"),
                                   method<&EngineObject::log_probs>("logProbs"),
                                   method<&EngineObject::forward_backward>("forwardBackward"),
                                   method<&EngineObject::critic>("critic"),
                                   method<&EngineObject::dispose>("dispose")}));
}

EngineObject::EngineObject(const Napi::CallbackInfo& info) : LearnerObject(info) {
  const Napi::Env env = info.Env();
  guarded(env, [&] {
    EngineRequest request(object(info[0], "The model"), object(info[1], "The options"));
    parameters_ = ModelLayout(request.config).parameters;
    trained_parameters_ = int64_t(ModelLayout(request.config).trained_parameters().size());
    adapter_parameters_ = AdapterLayout(request.config, request.options.adapter).parameters;
    merged_parameters_ = ModelLayout(merged_config(request.config, request.options.adapter)).parameters;
    const int64_t bytes = ModelLayout(request.config).size * int64_t{sizeof(float)};
    thread_ = EngineThread::create(env, std::move(request));
    external_bytes_ = bytes;
  });
  Napi::MemoryManagement::AdjustExternalMemory(env, external_bytes_);
}

EngineObject::~EngineObject() {
  if (thread_) thread_->request_stop();
}

void EngineObject::Finalize(Napi::BasicEnv env) { Napi::MemoryManagement::AdjustExternalMemory(env, -external_bytes_); }

Napi::Value EngineObject::initialize(const Napi::CallbackInfo& info) {
  const Key key = key_of(info[0]);
  const double deviation = number(info[1], "deviation");
  return start(info, [=](Engine& engine, const std::atomic<bool>& cancelled) {
    engine.initialize(deviation, key, cancelled);
    return nothing();
  });
}

Napi::Value EngineObject::freeze_reference(const Napi::CallbackInfo& info) {
  return start(info, [](Engine& engine, const std::atomic<bool>&) {
    engine.freeze_reference();
    return nothing();
  });
}

Napi::Value EngineObject::sample(const Napi::CallbackInfo& info) {
  const Napi::Object given = object(info[0], "The request");
  SampleRequest request;
  request.prompt = copy_of<int32_t>(given.Get("prompt"), "prompt");
  request.given_images = image_list(given.Get("images"));
  request.max_tokens = integer(given, "maxTokens");
  request.temperature = float(number(given, "temperature"));
  request.stop_tokens = copy_of<int32_t>(given.Get("stopTokens"), "stopTokens");
  request.key = key_of(given.Get("key"));
  request.top = int32_t(integer(given, "topTokens"));
  request.client = uint64_t(integer(given, "client"));
  request.group = uint64_t(integer(given, "group"));
  const Napi::Value constraint = given.Get("constraint"), on_tokens = given.Get("onTokens");
  if (!constraint.IsUndefined()) request.constraint = masks_of(constraint);
  if (!on_tokens.IsUndefined() && !on_tokens.IsFunction()) refuse("onTokens must be a function.");
  return thread_->start_sampling(info.Env(), std::move(request),
                                 on_tokens.IsUndefined() ? Napi::Function() : on_tokens.As<Napi::Function>());
}

Napi::Value EngineObject::logits(const Napi::CallbackInfo& info) {
  const auto compute = [tokens = copy_of<int32_t>(info[0], "tokens"), images = image_list(info[1])](Engine& engine, const std::atomic<bool>&) -> MakeResult {
    std::vector<float> logits = engine.logits(tokens, images);
    return [logits = std::move(logits)](Napi::Env env) mutable { return to_array(env, std::move(logits)); };
  };
  return start(info, compute, {}, true);
}

Napi::Value EngineObject::log_probs(const Napi::CallbackInfo& info) {
  const Napi::Object given = object(info[0], "The batch");
  TrainingBatch batch = training_batch(given);
  const Constraints constraints = constrain(batch, given);
  const auto images = images_of_batch(batch, given);
  const auto of = choice<Policy>(info[1], "of", {{"current", Policy::current}, {"reference", Policy::reference}});
  const auto temperature = float(number(info[2], "temperature"));
  const bool compare = boolean(info[3], "hellinger");
  const auto score = [=, kept = constraints, shown = images](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    Scores scores = engine.scores(of, batch, temperature, cancelled, compare);
    return [scores = std::move(scores)](Napi::Env env) mutable {
      const Napi::Object result = Napi::Object::New(env);
      result.Set("logProbs", to_array(env, std::move(scores.log_probs)));
      result.Set("entropies", to_array(env, std::move(scores.entropies)));
      result.Set("hellingers", to_array(env, std::move(scores.hellingers)));
      result.Set("topTokens", to_array(env, std::move(scores.top_tokens)));
      result.Set("topLogProbs", to_array(env, std::move(scores.top_log_probs)));
      return result;
    };
  };
  return start(info, score, given, true);
}

Napi::Value EngineObject::forward_backward(const Napi::CallbackInfo& info) {
  const Napi::Object given = object(info[0], "The batch");
  TrainingBatch batch = training_batch(given);
  const Constraints constraints = constrain(batch, given);
  const auto images = images_of_batch(batch, given);
  const TrainingLoss loss = training_loss(object(info[1], "The loss"), batch);
  const auto train = [=, kept = constraints, shown = images](Engine& engine, const std::atomic<bool>& cancelled) -> MakeResult {
    LossReport found = engine.forward_backward(batch, loss, cancelled);
    return [found = std::move(found)](Napi::Env env) mutable {
      Napi::Object report = Napi::Object::New(env);
      report.Set("loss", found.loss);
      report.Set("tokens", double(found.tokens));
      report.Set("computedTokens", double(found.passed.computed));
      report.Set("reusedTokens", double(found.passed.reused));
      report.Set("entropy", found.entropy);
      set_ratios(report, found);
      report.Set("logProbs", to_array(env, std::move(found.log_probs)));
      return report;
    };
  };
  return start(info, train, given);
}

Napi::Value EngineObject::critic(const Napi::CallbackInfo& info) { return start(info, CriticObject::opening(thread_)); }

Napi::Value EngineObject::plan(const Napi::CallbackInfo& info) {
  const auto plan = thread_->plan();
  return plan ? to_object(info.Env(), *plan) : info.Env().Undefined();
}

Napi::Value EngineObject::deterministic(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), thread_->deterministic());
}

Napi::Value EngineObject::statistics(const Napi::CallbackInfo& info) {
  const auto counts = thread_->counts();
  const Napi::Object result = Napi::Object::New(info.Env());
  result.Set("computedTokens", double(counts->computed));
  result.Set("reusedTokens", double(counts->reused));
  result.Set("sampledTokens", double(counts->sampled));
  result.Set("preemptions", double(counts->preempted));
  return result;
}

Napi::Value EngineObject::dispose(const Napi::CallbackInfo& info) {
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), -external_bytes_);
  external_bytes_ = 0;
  return thread_->stop(info.Env());
}

}  // namespace gigpo
