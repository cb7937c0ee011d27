#include "costmodel/estimate/backward_memory.hpp"

#include "costmodel/estimate/stage_cost.hpp"

namespace costmodel {

namespace {

Bytes kept_by(const Footprint& own, bool alternate) {
  return alternate ? own.kept_alternate : own.kept;
}

// Above what it keeps: a product that is kept is not computed again.
Bytes working_set(const Footprint& own, bool alternate) {
  const Bytes most = max(own.forward_transient, own.backward_transient);
  return alternate ? max(Bytes(0), most + own.kept - own.kept_alternate) : most;
}

// One backward of a stage, moment by moment.
class BackwardWalk {
 public:
  BackwardWalk(const PlanInputs& in, std::size_t k)
      : in_(in),
        appear_(gradients_appear(in)),
        by_unit_(gathers_by_unit(in)),
        weight_(weight_bytes_per_parameter(in.on.training)),
        gradient_(gradient_bytes_per_parameter(in.on.training)),
        gathers_(in.on.training.stack.zero.prefetch ? 2 : 1) {
    if (!by_unit_) return;
    each_layer(in, k, [&](LayerKind kind, const LayerCost& layer, bool, int count) {
      if (kind.is_end()) gathered_ += gathered(layer, of_own(k, kind, layer));
      if (!kind.is_end()) layers_ += count;
    });
  }

  template <class Visit>
  void run(std::size_t k, const Visit& visit) {
    each_layer(in_, k, [&](LayerKind kind, const LayerCost& layer, bool again, int count) {
      const double own = of_own(k, kind, layer);
      if (kind.is_end()) {
        visit(kind, again, false, layer.footprint, moment(layer, false, Bytes(0), 0, gathered_));
        freed_ += layer.footprint.kept;
        if (by_unit_) {
          ends_ += own;
          // Its gradients, until the end; a tied table's are the head's first.
          gathered_ += Bytes((kind == LayerKind::head ? layer.weights : own) * weight_);
        } else if (appear_) {
          made_ += shard(layer, own);
        }
      } else {
        layers(kind, layer, again, count, own, visit);
      }
    });
    if (appear_ && !by_unit_) {  // all gradients, before the step
      visit(LayerKind::embedding, false, true, Footprint{},
            StageMoment{Bytes(0) - freed_, made_, Bytes(0)});
    }
    if (ends_ <= 0) return;
    const Bytes reduced(appear_ ? ends_ * gradient_ / in_.plan.shards() : 0);
    visit(LayerKind::embedding, false, true, Footprint{},
          StageMoment{Bytes(0) - freed_, made_ + reduced, Bytes(ends_ * gradient_)});
  }

 private:
  // The parameters of a layer; a tied table is the embedding's, where a stage has both.
  double of_own(std::size_t k, LayerKind kind, const LayerCost& layer) const {
    return layer.weights - (kind == LayerKind::head ? shared_table(in_, k) : 0);
  }
  // Equal layers. Between the second and the last of them everything changes in proportion.
  template <class Visit>
  void layers(LayerKind kind, const LayerCost& layer, bool again, int count, double own,
              const Visit& visit) {
    const Footprint& footprint = layer.footprint;
    const bool alternate = again && keeps_alternate(in_);
    const Bytes part = appear_ ? shard(layer, own) : Bytes(0);
    const Bytes unit = gathered(layer, own), narrow(own * weight_), wide(own * gradient_);
    for (const int before : {0, 1, count - 2, count - 1}) {
      if (before < 0 || before >= count) continue;
      Bytes at_work = gathered_, reducing = gathered_;
      if (by_unit_) {  // FSDP2 frees what it sent when the next reduction begins
        const bool last = layers_ == before + 1;
        at_work += unit * (last ? 1 : gathers_) + narrow + (before > 0 ? wide : sent_);
        reducing += unit * (last ? 0 : gathers_ - 1) + narrow + wide;
      }
      visit(kind, again, false, footprint, moment(layer, alternate, part, before, at_work));
      if (!by_unit_ && !appear_) continue;
      StageMoment after = moment(layer, alternate, part, before + 1, reducing);
      after.activations = after.activations - working_set(footprint, alternate);
      visit(kind, again, false, footprint, after);
    }
    freed_ += kept_by(footprint, alternate) * count;
    made_ += part * count;
    sent_ = wide;
    layers_ -= count;
  }

  // While a layer works, `before` of its kind are done.
  StageMoment moment(const LayerCost& layer, bool alternate, Bytes part, int before,
                     Bytes buffers) const {
    const Footprint& own = layer.footprint;
    return {working_set(own, alternate) - freed_ - kept_by(own, alternate) * before,
            made_ + part * before, buffers};
  }

  Bytes gathered(const LayerCost& layer, double own) const {
    return Bytes(own * weight_) + layer.frozen;
  }
  Bytes shard(const LayerCost& layer, double own) const {
    return Bytes((in_.plan.zero >= 2 ? sharded(own, layer.expert_weights, in_.plan) : own) *
                 gradient_);
  }

  const PlanInputs& in_;
  bool appear_, by_unit_;
  double weight_, gradient_, gathers_;
  double ends_ = 0;  // parameters of their unit
  int layers_ = 0;   // that are to come
  Bytes gathered_;   // of the ends, and their gradients
  Bytes sent_;       // gradients of the layer before, being reduced
  Bytes freed_, made_;
};

}  // namespace

bool frees_gradients(const PlanInputs& in) {
  const ParallelPlan& plan = in.plan;
  const StackSpec& stack = in.on.training.stack;
  const bool own =
      plan.zero >= 2 || plan.dp * plan.cp == 1 || (stack.zero.whole_in_pipeline && plan.pp > 1);
  return stack.memory.frees_gradients && own && !plan.offload.states();
}

bool gradients_appear(const PlanInputs& in) {
  return frees_gradients(in) && in.micro_batches == 1 && in.plan.chunks() == 1;
}

bool keeps_alternate(const PlanInputs& in) {
  return in.plan.recompute.layers == Recompute::half &&
         in.on.training.stack.memory.selective_half && !in.on.model.encoder_decoder();
}

bool gathers_by_unit(const PlanInputs& in) {
  return in.plan.zero == 3 && in.on.training.stack.zero.root_unit;
}

StageMoment fullest_moment(const PlanInputs& in, std::size_t k) {
  StageMoment most;
  if (in.on.training.stack.memory.frees_gradients || gathers_by_unit(in) || keeps_alternate(in)) {
    const auto more = [&](LayerKind, bool, bool, const Footprint&, const StageMoment& moment) {
      if (moment.sum() > most.sum()) most = moment;
    };
    BackwardWalk(in, k).run(k, more);
    return most;
  }
  // Of these a search asks for nothing else.
  Bytes freed;
  each_layer(in, k, [&](LayerKind, const LayerCost& layer, bool, int count) {
    most.activations = max(most.activations, working_set(layer.footprint, false) - freed);
    freed += layer.footprint.kept * count;
  });
  return most;
}

MomentPlace fullest_place(const PlanInputs& in, std::size_t k) {
  MomentPlace most;
  BackwardWalk(in, k).run(k, [&](LayerKind kind, bool again, bool after, const Footprint& own,
                                 const StageMoment& moment) {
    if (moment.sum() <= most.moment.sum()) return;
    most = {kind, again, own.backward_transient >= own.forward_transient, after, moment};
  });
  return most;
}

}  // namespace costmodel
