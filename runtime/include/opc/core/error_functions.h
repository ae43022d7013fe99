/* erf, erfc and erfinv, see core/binary.h. */
#ifndef OPC_CORE_ERROR_FUNCTIONS_H
#define OPC_CORE_ERROR_FUNCTIONS_H

#include "opc/core/exponentials.h"
#include "opc/core/logarithms.h"

namespace opc {
inline namespace OPC_VARIANT {

/* erf with an error below 1.9 ulp: v - v^2 / 4, where v = 2 - 2 sqrt(erfc(t)) of t = |x| takes a polynomial of a far lower degree than
 * erf itself. v = t + t Q(t), so that small results keep their digits; Q gives erf the least maximum relative error up to
 * the bound. Beyond, erf rounds to 1. Of double, Q is one in t - 3/4, whose terms add up to no more than half of what erf is. */
template <typename T>
OPC_INLINE T erf_factor(T t) {
  if constexpr (is_float<T>) {
    return polynomial(
        t, 0.12837916612625122f, 0.3183097243309021f, -0.1965358853340149f, -0.0855754017829895f, 0.033330388367176056f,
        0.014849614351987839f, -0.0050978646613657475f, -0.0011435666820034385f, -0.0001925332035170868f, 0.0007124824333004653f,
        -0.00031370631768368185f, 6.481346645159647e-05f, -6.813640084146755e-06f, 2.958554716769868e-07f);
  } else {
    return long_polynomial(
        t - 0.75,
        0.2334868513928341, -0.049610529040721274, -0.24254297434767452, 0.04629771757846592, 0.036964135910244965, -0.011851379953210674,
        -0.0036748406665031074, 0.0018145942339968589, 0.0002131195515541852, -0.00019104201902684872, -3.00849080648412e-06,
        1.4979955246881165e-05, -6.408955976051123e-07, -9.766917928992345e-07, 7.985467064005541e-08, 5.931323701671516e-08,
        -7.891011905431496e-09, -3.0477148360539875e-09, 6.923235091286854e-10, 7.50584246202583e-11, -4.526870419084506e-11,
        1.7951577946573192e-11, -1.1269808544922463e-11, 5.037564641767693e-12, -1.4535291217822348e-12, 2.8732534210578233e-13,
        -4.036437014246332e-14, 4.064439394762515e-15, -2.8835435716954424e-16, 1.372229324694189e-17, -3.9312632338095097e-19,
        5.110629721013009e-21);
  }
}
template <typename T>
OPC_INLINE T erf(T x) {
  const T t = not_above(bounds_of(x).erf_most, size_of(x)), v = multiply_add(erf_factor(t), t, t);
  return signed_as(multiply_add(v * T(-0.25), v, v), x);
}

/* (1 + a x) exp(x^2) erfc(x) for x >= 0 by a polynomial in t = (x - 4) / (x + 4), as M. M. Shepherd and J. G. Laframboise have it
 * (Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity, Mathematics of Computation 36, 1981); but with a = 2 / sqrt(pi) it
 * is flat at 0, where errors of t would count. */
template <typename T>
OPC_INLINE T scaled_erfc(T t) {
  if constexpr (is_float<T>) {
    return polynomial(
        t,
        0.755348825446502f, -0.19167733843008603f, 0.10399732340048583f, -0.03316517444999473f, -0.009516923954425837f,
        0.025373846443722873f, -0.02379801009346066f, 0.01539907677854781f, -0.007269961647162808f, 0.0025059927086669783f,
        -0.0006377778972866077f, -0.0003129272019858142f);
  } else {
    return long_polynomial(
        t,
        0.7553487931750763, -0.19167733398439019, 0.10399735387055646, -0.033165618819605704, -0.009517900868901039, 0.02538004572709255,
        -0.02378244660816066, 0.01537199964430974, -0.007369087652222993, 0.002490717252097512, -0.0004370117757127203,
        -7.799683307664424e-05, 7.51489987907382e-05, -1.4595303458010285e-05, -5.0480078063003345e-06, 3.0434067299427723e-06,
        4.18073841680686e-08, -4.239766157994139e-07, 5.330855248078218e-08, 5.5590645714586495e-08, -1.1209103343602466e-08,
        -7.191711905056888e-09, 1.142529943634919e-09, 6.689658653380709e-10);
  }
}

/* erfc with an error below 4 ulp: exp(-x^2) of a square in two parts, the rounded one of x without its last digits and the rest. */
template <typename T>
OPC_INLINE T erfc(T x) {
  const T t = not_above(bounds_of(x).erfc_most, size_of(x)), divisor = multiply_add(T(1.1283791670955126), t, T(1));
  const T high = from_bits<T>(to_bits(t) & ~((typename binary<T>::bits(1) << (binary<T>::digits / 2 + 1)) - 1));
  const T low = (high - t) * (high + t); /* high^2, which is exact, less t^2 */
  const Reduced<T> of = reduced(T(-high * high));
  const T power = power_of_two(of.shifted), rest = exp_rest(T(of.r + low));
  const T scaled = scaled_erfc(T((t - 4) / (t + 4))) / divisor;
  const T value = multiply_add(rest, scaled, scaled) * power * power;
  return x < 0 ? T(2) - value : value;
}

/* erfinv(x) / x as polynomials in w = -log(1 - x^2) up to 6.25 and in sqrt(w) beyond, as M. Giles has it (Approximating the erfinv function,
 * GPU Computing Gems, 2011). At -1 and 1, where w is infinite, erfinv is. */
template <typename T>
OPC_INLINE T erfinv_factor(T w) {
  const T root = root_of(w);
  if constexpr (is_float<T>) {
    const T near = polynomial(
        w - 3.125f,
        1.6536545753479004f, 0.24015817046165466f, -0.00603370601311326f, -0.0007406671647913754f, 0.00018677799380384386f,
        -1.3905913874623366e-05f, -1.3852907159161987e-06f, 4.302214904328139e-07f, -2.5032141692804544e-08f,
        -5.085154963779814e-09f, 6.729894974633055e-10f, 1.8095878961954526e-11f);
    const T far = polynomial(
        root - 3.25f,
        3.083885669708252f, 1.0052590370178223f, 0.0053713517263531685f, -0.0037515289150178432f, 0.0024852703791111708f,
        -0.0016859292518347502f, 0.0009838830446824431f, -0.00036295910831540823f, -3.8711536035407335e-05f,
        8.232907566707581e-05f);
    return w < 6.25f ? near : far;
  } else {
    const T near = long_polynomial(
        w - 3.125,
        1.6536545626831027, 0.24015818242558826, -0.006033670871427753, -0.0007407025341539544, 0.00018673420802425467,
        -1.3882523395793293e-05, -1.3654691844323374e-06, 4.2347881908024375e-07, -2.9070382776648378e-08,
        -4.112661979758031e-09, 1.0512183991279638e-09, -5.414238912768767e-11, -1.2976958459382295e-11, 2.630354353372985e-12,
        -8.117005912836966e-14, -3.998974190030991e-14, 6.594697191261283e-15, -4.2869536458607676e-17, -1.3003889926330609e-16,
        1.576004159544312e-17, 1.1444058316249121e-18, -3.5755987484092317e-19, -1.0090023132527011e-21, 3.375914946092168e-21);
    const T middle = long_polynomial(
        root - 3.25,
        3.0838856104922203, 1.0052589676941597, 0.005370914553602698, -0.0037512085075982987, 0.002491442095508288,
        -0.0016882755553131535, 0.0009532893906899131, -0.0003550375281584775, 2.4031010238097195e-05, 6.828489686345908e-05,
        -4.731771491763788e-05, 1.2475154359757437e-05, 2.921895494470215e-06, -4.013584691706339e-06, 1.5054609153707718e-06,
        1.7956789701195677e-08, -2.7774915117085057e-07, 9.087304722232126e-08, 3.2290559994394552e-09);
    const T far = long_polynomial(
        root - 5.0,
        4.849906401408584, 1.0103004648645433, -0.00013871931833696354, -0.00021503011971464925, 7.5995277047271e-05,
        -1.9681772387714385e-05, 4.526062415691216e-06, -9.930183163174362e-07, 2.290057846927867e-07, -6.759413685955373e-08,
        2.9145253996938398e-08, -1.5182073672687137e-08, 7.61974402858941e-09, -3.5506915738583203e-09, 1.5046119172469912e-09,
        -3.9203745586804097e-10, -2.6205143481339413e-11, 3.216069287844262e-11);
    return w < 6.25 ? near : w < 16.0 ? middle : far;
  }
}

/* The inverse of erf with an error below 3.5 ulp. */
template <typename T>
OPC_INLINE T erfinv(T x) {
  const T value = x * erfinv_factor(T(-log((T(1) - x) * (T(1) + x))));
  return size_of(x) == 1 ? signed_as(binary<T>::infinity, x) : value;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CORE_ERROR_FUNCTIONS_H
