"""The RKNN backend: custom ops of Rockchip's NPU toolkit and of its C runtime."""
