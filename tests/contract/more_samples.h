// Samples of the ops that are not elementwise arithmetic, those of networks by inclusion.
#pragma once
#include "taper/tests/contract/network_samples.h"

namespace taper::contract {

template <> struct Samples<ops::Bitwise> {
  static std::vector<Sample> make() {
    return {{"or",
             {integers({{1, 2, 3}, {4, 5, 6}}), integers({{7, 1, 2}, {0, 3, 9}})},
             one([](Inputs in) { return bitwise_or(in[0], in[1]); })},
            {"xor", {integers({{1, 2, 3}, {4, 5, 6}}), integers({3, 1, 2})}, one([](Inputs in) {
               return bitwise_xor(in[0], in[1]);
             })}};
  }
};

template <> struct Samples<ops::Not> {
  static std::vector<Sample> make() {
    return {{"logical", {numbers({3, 4})}, one([](Inputs in) {
               return logical_not(in[0] - in[0].floor());
             })},
            {"bits", {integers({{1, 2, 3}, {4, 5, 6}})}, one([](Inputs in) {
               return bitwise_not(in[0]);
             })}};
  }
};

template <> struct Samples<ops::Where> {
  static std::vector<Sample> make() {
    return {{"both", {numbers({3, 4}), numbers({4}, -1, 1)}, one([](Inputs in) {
               return where(mask34().to(in[0].device()), in[0], in[1]);
             })},
            {"number", {numbers({3, 4})}, one([](Inputs in) {
               return where(mask34().to(in[0].device()), in[0], 0.5);
             })}};
  }
};

template <> struct Samples<ops::MaskedFill> {
  static std::vector<Sample> make() {
    return {{"number", {numbers({3, 4})}, one([](Inputs in) {
               return masked_fill(in[0], mask34().to(in[0].device()), 2);
             })},
            {"tensor", {numbers({3, 4}), numbers({})}, one([](Inputs in) {
               return masked_fill(in[0], mask34().to(in[0].device()), in[1]);
             })}};
  }
};

template <> struct Samples<ops::Sum> {
  static std::vector<Sample> make() {
    return {{"all", {numbers({3, 4})}, one([](Inputs in) { return sum(in[0]); })},
            {"last", {numbers({3, 4})}, one([](Inputs in) { return sum(in[0], 1, true); })},
            {"two", {numbers({2, 3, 4})}, one([](Inputs in) {
               return sum(in[0], {0, 2});
             })},
            {"mean", {numbers({2, 3, 4})}, one([](Inputs in) { return mean(in[0], 1); })},
            {"empty", {numbers({0, 3})}, one([](Inputs in) { return sum(in[0], 0); })}};
  }
};

template <> struct Samples<ops::Prod> {
  static std::vector<Sample> make() {
    return {{"all", {numbers({3, 4})}, one([](Inputs in) { return prod(in[0]); })},
            {"dim", {numbers({3, 4})}, one([](Inputs in) { return prod(in[0], 0); })},
            {"a zero", {numbers({3, 4})}, one([](Inputs in) {
               return prod(in[0] - numbers({3, 4})[1][2].item(), 1);
             })}};
  }
};

template <> struct Samples<ops::VarMean> {
  static std::vector<Sample> make() {
    return {{"var", {numbers({3, 4})}, one([](Inputs in) { return var(in[0], 1); })},
            {"biased", {numbers({2, 3, 4})}, one([](Inputs in) {
               return var(in[0], {0, 2}, false, true);
             })},
            {"both", {numbers({3, 4})}, [](Inputs in) -> Outputs {
               auto [v, m] = var_mean(in[0], 0);
               return {v, m};
             }}};
  }
};

template <> struct Samples<ops::Std> {
  static std::vector<Sample> make() {
    return {{"all", {numbers({3, 4})}, one([](Inputs in) { return taper::std(in[0]); })},
            {"dim", {numbers({3, 4})}, one([](Inputs in) { return taper::std(in[0], 1); })}};
  }
};

template <> struct Samples<ops::Norm> {
  static std::vector<Sample> make() {
    return {{"2", {numbers({3, 4})}, one([](Inputs in) { return norm(in[0]); })},
            {"1", {numbers({3, 4})}, one([](Inputs in) { return norm(in[0], 1, 1); })},
            {"3", {numbers({3, 4})}, one([](Inputs in) { return norm(in[0], 3, 0, true); })},
            {"inf", {numbers({3, 4})}, one([](Inputs in) {
               return norm(in[0], std::numeric_limits<double>::infinity(), 1);
             })}};
  }
};

template <> struct Samples<ops::LogSumExp> {
  static std::vector<Sample> make() {
    return {{"last", {numbers({3, 4})}, one([](Inputs in) { return logsumexp(in[0], 1); })},
            {"both", {numbers({3, 4})}, one([](Inputs in) {
               return logsumexp(in[0], {0, 1}, true);
             })}};
  }
};

template <> struct Samples<ops::Extreme> {
  static std::vector<Sample> make() {
    return {{"max", {numbers({3, 4})}, one([](Inputs in) { return max(in[0]); })},
            {"amin", {numbers({3, 4})}, one([](Inputs in) { return amin(in[0], 1); })}};
  }
};

template <> struct Samples<ops::ExtremeAlong> {
  static std::vector<Sample> make() {
    return {{"max",
             {numbers({3, 4})},
             [](Inputs in) -> Outputs {
               auto [v, i] = max(in[0], 1);
               return {v, i};
             }},
            {"min", {numbers({3, 4})}, [](Inputs in) -> Outputs {
               auto [v, i] = min(in[0], 0, true);
               return {v, i};
             }}};
  }
};

template <> struct Samples<ops::ArgExtreme> {
  static std::vector<Sample> make() {
    return {{"all", {numbers({3, 4})}, one([](Inputs in) { return argmax(in[0]); })},
            {"dim", {numbers({3, 4})}, one([](Inputs in) { return argmin(in[0], 1); })}};
  }
};

template <> struct Samples<ops::AnyAll> {
  static std::vector<Sample> make() {
    return {{"any", {numbers({3, 4})}, one([](Inputs in) { return any(in[0] > 0.8, 1); })},
            {"all", {numbers({3, 4})}, one([](Inputs in) { return all(in[0] > 0.1); })}};
  }
};

template <> struct Samples<ops::Cumsum> {
  static std::vector<Sample> make() {
    return {{"0", {numbers({3, 4})}, one([](Inputs in) { return cumsum(in[0], 0); })},
            {"1", {numbers({3, 4})}, one([](Inputs in) { return cumsum(in[0], 1); })}};
  }
};

template <> struct Samples<ops::Cumprod> {
  static std::vector<Sample> make() {
    return {{"1", {numbers({3, 4})}, one([](Inputs in) { return cumprod(in[0], 1); })},
            {"a zero", {numbers({3, 4})}, one([](Inputs in) {
               return cumprod(in[0] - numbers({3, 4})[1][1].item(), 1);
             })}};
  }
};

template <> struct Samples<ops::Sort> {
  static std::vector<Sample> make() {
    return {{"last",
             {numbers({3, 4})},
             [](Inputs in) -> Outputs {
               auto [v, i] = sort(in[0]);
               return {v, i};
             }},
            {"first, descending", {numbers({3, 4})}, [](Inputs in) -> Outputs {
               auto [v, i] = sort(in[0], 0, true);
               return {v, i};
             }}};
  }
};

template <> struct Samples<ops::TopK> {
  static std::vector<Sample> make() {
    return {{"2", {numbers({3, 4})}, [](Inputs in) -> Outputs {
               auto [v, i] = topk(in[0], 2);
               return {v, i};
             }}};
  }
};

template <> struct Samples<ops::View> {
  static std::vector<Sample> make() {
    return {{"reshape", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].reshape({2, 6});
             })},
            {"flatten", {numbers({2, 3, 2})}, one([](Inputs in) { return in[0].flatten(1); })}};
  }
};

template <> struct Samples<ops::Permute> {
  static std::vector<Sample> make() {
    return {{"t", {numbers({3, 4})}, one([](Inputs in) { return in[0].t(); })},
            {"permute", {numbers({2, 3, 4})}, one([](Inputs in) {
               return in[0].permute({2, 0, 1});
             })}};
  }
};

template <> struct Samples<ops::Expand> {
  static std::vector<Sample> make() {
    return {{"rows", {numbers({1, 4})}, one([](Inputs in) {
               return in[0].expand({3, 4});
             })},
            {"new dim", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].expand({2, 3, 4});
             })}};
  }
};

template <> struct Samples<ops::Window> {
  static std::vector<Sample> make() {
    return {
        {"select", {numbers({3, 4})}, one([](Inputs in) { return in[0].select(1, 2); })},
        {"slice", {numbers({3, 4})}, one([](Inputs in) { return in[0].slice(1, 0, 4, 2); })},
        {"backwards", {numbers({3, 4})}, one([](Inputs in) { return in[0].slice(1, 3, 0, -2); })},
        {"diagonal", {numbers({3, 4})}, one([](Inputs in) { return in[0].diagonal(1); })},
        {"unfold", {numbers({3, 4})}, one([](Inputs in) { return in[0].unfold(1, 2, 1); })},
        {"split", {numbers({3, 4})}, [](Inputs in) -> Outputs { return in[0].split(3, 1); }},
        {"unbind", {numbers({3, 4})}, [](Inputs in) -> Outputs { return in[0].unbind(0); }}};
  }
};

template <> struct Samples<ops::StridedPart> {
  static std::vector<Sample> make() {
    return {{"overlapping", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].contiguous().as_strided({3, 2}, {2, 1}, 1);
             })}};
  }
};

template <> struct Samples<ops::Embed> {
  static std::vector<Sample> make() {
    return {{"apply", {numbers({3})}, direct([] {
               const Layout base = contiguous_layout({3, 4});
               return ops::Embed(base, select_layout(base, 1, 2));
             })}};
  }
};

template <> struct Samples<ops::ReplacePart> {
  static std::vector<Sample> make() {
    return {{"column", {numbers({3, 4}), numbers({3}, -1, 0)}, direct([] {
               const Layout base = contiguous_layout({3, 4});
               return ops::ReplacePart(base, select_layout(base, 1, 2));
             })}};
  }
};

template <> struct Samples<ops::Copy> {
  static std::vector<Sample> make() {
    return {
        {"clone", {numbers({3, 4})}, one([](Inputs in) { return in[0].clone(); })},
        {"contiguous", {numbers({3, 4})}, one([](Inputs in) { return in[0].t().contiguous(); })},
        {"repeat", {numbers({2, 2})}, one([](Inputs in) {
           return in[0].repeat({2, 3});
         })}};
  }
};

template <> struct Samples<ops::CopyInto> {
  static std::vector<Sample> make() {
    return {{"a part", {numbers({3, 4}), numbers({4}, -1, 0)}, one([](Inputs in) {
               return [&] {
                 const Tensor y = in[0] * 1;
                 y.select(0, 1).copy_(in[1]);
                 return y;
               }();
             })}};
  }
};

template <> struct Samples<ops::Fill> {
  static std::vector<Sample> make() {
    return {{"a part", {numbers({3, 4})}, one([](Inputs in) {
               return [&] {
                 const Tensor y = in[0] * 1;
                 y.select(0, 1).fill_(2);
                 return y;
               }();
             })}};
  }
};

template <> struct Samples<ops::Cat> {
  static std::vector<Sample> make() {
    return {{"rows", {numbers({3, 4}), numbers({2, 4}, -1, 0)}, one([](Inputs in) {
               return cat({in[0], in[1]}, 0);
             })},
            {"stack", {numbers({3, 4}), numbers({3, 4}, -1, 0)}, one([](Inputs in) {
               return stack({in[0], in[1]}, 1);
             })}};
  }
};

template <> struct Samples<ops::Flip> {
  static std::vector<Sample> make() {
    return {{"both", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].flip({0, 1});
             })},
            {"one", {numbers({2, 3, 2})}, one([](Inputs in) { return in[0].flip({1}); })}};
  }
};

template <> struct Samples<ops::Pad> {
  static std::vector<Sample> make() {
    return {{"constant", {numbers({3, 4})}, one([](Inputs in) {
               return pad(in[0], {1, 2, 0, 1}, PadMode::kConstant, 0.5);
             })},
            {"negative", {numbers({3, 4})}, one([](Inputs in) {
               return pad(in[0], {-1, 1});
             })}};
  }
};

template <> struct Samples<ops::Index> {
  static std::vector<Sample> make() {
    return {{"rows", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].index({integers({2, 0, 2}).to(in[0].device())});
             })},
            {"both", {numbers({3, 4})}, one([](Inputs in) {
               return in[0].index({integers({2, 0, 2}).to(in[0].device()),
                                   integers({1, 3, 0}).to(in[0].device())});
             })}};
  }
};

template <> struct Samples<ops::IndexPut> {
  static std::vector<Sample> make() {
    return {{"set", {numbers({3, 4}), numbers({2, 4}, -1, 0)}, one([](Inputs in) {
               return index_put(in[0], {integers({2, 0}).to(in[0].device())}, in[1]);
             })},
            {"add", {numbers({3, 4}), numbers({3, 4}, -1, 0)}, one([](Inputs in) {
               return index_put(in[0], {integers({2, 0, 2}).to(in[0].device())}, in[1], true);
             })}};
  }
};

template <> struct Samples<ops::Nonzero> {
  static std::vector<Sample> make() { return {}; }
};

template <> struct Samples<ops::Gather> {
  static std::vector<Sample> make() {
    return {{"1", {numbers({3, 4})}, one([](Inputs in) {
               return gather(in[0], 1, integers({{0, 1}, {3, 3}, {2, 0}}).to(in[0].device()));
             })}};
  }
};

template <> struct Samples<ops::Scatter> {
  static std::vector<Sample> make() {
    return {
        {"set", {numbers({3, 4}), numbers({3, 2}, -1, 0)}, one([](Inputs in) {
           return scatter(in[0], 1, integers({{0, 1}, {3, 2}, {2, 0}}).to(in[0].device()), in[1]);
         })},
        {"add", {numbers({3, 4}), numbers({3, 2}, -1, 0)}, one([](Inputs in) {
           return scatter_add(in[0], 1, integers({{0, 1}, {3, 3}, {2, 0}}).to(in[0].device()),
                              in[1]);
         })}};
  }
};

template <> struct Samples<ops::IndexSelect> {
  static std::vector<Sample> make() {
    return {{"0", {numbers({3, 4})}, one([](Inputs in) {
               return index_select(in[0], 0, integers({2, 0, 2}).to(in[0].device()));
             })},
            {"1", {numbers({3, 4})}, one([](Inputs in) {
               return index_select(in[0], 1, integers({2, 0, 2}).to(in[0].device()));
             })}};
  }
};

template <> struct Samples<ops::IndexAdd> {
  static std::vector<Sample> make() {
    return {{"0", {numbers({3, 4}), numbers({3, 4}, -1, 0)}, one([](Inputs in) {
               return index_add(in[0], 0, integers({2, 0, 2}).to(in[0].device()), in[1]);
             })}};
  }
};

template <> struct Samples<ops::Embedding> {
  static std::vector<Sample> make() {
    return {{"rows", {numbers({3, 4})}, one([](Inputs in) {
               return embedding(in[0], integers({{2, 0}, {1, 2}}).to(in[0].device()));
             })}};
  }
};

template <> struct Samples<ops::Matmul> {
  static std::vector<Sample> make() {
    return {
        {"mm", {numbers({3, 4}), numbers({4, 2})}, one([](Inputs in) {
           return matmul(in[0], in[1]);
         })},
        {"batched", {numbers({2, 3, 4}), numbers({4, 2})}, one([](Inputs in) {
           return matmul(in[0], in[1]);
         })},
        {"broadcast", {numbers({2, 1, 3, 2}), numbers({3, 2, 2})}, one([](Inputs in) {
           return matmul(in[0], in[1]);
         })},
        {"dot", {numbers({4}), numbers({4}, -1, 1)}, one([](Inputs in) {
           return dot(in[0], in[1]);
         })},
        {"mv", {numbers({3, 4}), numbers({4})}, one([](Inputs in) { return mv(in[0], in[1]); })},
        {"empty", {numbers({2, 0}), numbers({0, 3})}, one([](Inputs in) {
           return mm(in[0], in[1]);
         })},
        {"einsum", {numbers({2, 3, 4}), numbers({2, 4, 2})}, one([](Inputs in) {
           return einsum("bik,bkj->bij", {in[0], in[1]});
         })}};
  }
};

template <> struct Samples<ops::AddMatmul> {
  static std::vector<Sample> make() {
    return {{"addmm", {numbers({2}), numbers({3, 4}), numbers({4, 2})}, one([](Inputs in) {
               return addmm(in[0], in[1], in[2], 0.5, 2);
             })},
            {"baddbmm",
             {numbers({2, 3, 2}), numbers({2, 3, 4}), numbers({2, 4, 2})},
             one([](Inputs in) { return baddbmm(in[0], in[1], in[2]); })}};
  }
};

template <> struct Samples<ops::Linear> {
  static std::vector<Sample> make() {
    return {{"bias", {numbers({3, 4}), numbers({2, 4}), numbers({2})}, one([](Inputs in) {
               return linear(in[0], in[1], in[2]);
             })},
            {"relu",
             {numbers({3, 4}, -1, 1), numbers({2, 4}, -1, 1), numbers({2}, -1, 1)},
             one([](Inputs in) { return linear(in[0], in[1], in[2], Activation::kRelu); })},
            {"gelu",
             {numbers({3, 4}, -1, 1), numbers({2, 4}), numbers({2}, -1, 1)},
             one([](Inputs in) { return linear(in[0], in[1], in[2], Activation::kGelu); })},
            {"gelu_tanh", {numbers({2, 3, 4}, -1, 1), numbers({2, 4})}, one([](Inputs in) {
               return linear(in[0], in[1], Tensor(), Activation::kGeluTanh);
             })},
            {"3-d", {numbers({2, 2, 4}), numbers({3, 4})}, one([](Inputs in) {
               return linear(in[0], in[1]);
             })}};
  }
};

}  // namespace taper::contract
