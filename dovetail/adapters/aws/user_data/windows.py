"""User data of Windows: one PowerShell block, the class's own lines first (AWS-99)."""

from dovetail.adapters.aws.user_data.bootstrap import Bootstrap, kubelet_flags


def windows(start: Bootstrap) -> str:
    call = [
        "& $EKSBootstrapScriptFile",
        f"-EKSClusterName '{start.cluster}'",
        f"-APIServerEndpoint '{start.endpoint}'",
        *([f"-Base64ClusterCA '{start.ca_bundle}'"] if start.ca_bundle else []),
        f"-KubeletExtraArgs '{' '.join(kubelet_flags(start))}'",
        *([f"-DNSClusterIP '{start.dns[0]}'"] if start.dns else []),
    ]
    lines = [
        "<powershell>",
        *([start.own] if start.own else []),
        r'[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"',
        " ".join(call),
        "</powershell>",
    ]
    return "\n".join(lines)
