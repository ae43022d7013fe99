"""Whether references name what the frameworks have: checked where the frameworks are installed."""

from __future__ import annotations

from opc.analysis.elaborate.references import onnx_operators
from opc.diagnostics import Diagnostics, did_you_mean
from opc.spec.loader import Spec

_OPERATORS = """
Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization Bernoulli
BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike CausalConvWithState Ceil Celu
CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh
CumProd CumSum DFT DeformConv DepthToSpace DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp
Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater
GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If ImageDecoder
InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual LinearAttention Log LogSoftmax Loop
LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix
Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement
OptionalHasElement Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal
RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu Reshape Resize ReverseSequence RoiAlign
RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty
SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax
SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze StringConcat StringNormalizer
StringSplit Sub Sum SwiGLU Swish Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Trilu Unique
Unsqueeze Upsample Where Xor
"""

OPERATORS = frozenset(_OPERATORS.split())
"""Operators of ONNX's default domain: what is named here is there, without importing onnx, which takes longer than a check."""


def check_operators(spec: Spec, found: Diagnostics) -> None:
    """Record the operators in a spec's ONNX references that ONNX's own domain lacks; none where onnx is not installed."""
    named = [(operator, span) for operator, span in onnx_operators(spec) if operator not in OPERATORS]
    if not named:
        return
    try:
        from onnx import defs
    except ImportError:
        return
    for operator, span in named:
        if not defs.has(operator):
            known = {s.name for s in defs.get_all_schemas() if s.domain == ""}
            hint = did_you_mean(operator, known) or "references name operators of ONNX's default domain"
            found.error(f"ONNX has no operator '{operator}'", span, hint)
