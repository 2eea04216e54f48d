# What Dovetail needs in AWS for one cluster: what deploy/aws/cloudformation.yaml makes, with the same policies, which
# both take from deploy/aws/policies.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name

  node_role       = var.node_role_name == "" ? "DovetailNodeRole-${var.cluster_name}" : var.node_role_name
  queue           = var.queue_name == "" ? "dovetail-${var.cluster_name}" : var.queue_name
  controller_role = var.controller_role_name == "" ? aws_iam_role.controller[0].name : var.controller_role_name

  every_policy = {
    DovetailNodeLifecycle    = "node-lifecycle"
    DovetailDiscovery        = "discovery"
    DovetailInstanceProfiles = "instance-profiles"
    DovetailRecord           = "record"
  }
  policies = { for name, file in local.every_policy : name => file if file != "record" || var.record_bucket != "" }

  # Placeholders are those of CloudFormation; each is replaced in turn.
  documents = {
    for name, file in local.policies : name => replace(replace(replace(replace(replace(replace(replace(
      file("${path.module}/../policies/${file}.json"),
      "$${AWS::Partition}", local.partition),
      "$${AWS::Region}", local.region),
      "$${AWS::AccountId}", local.account),
      "$${ClusterName}", var.cluster_name),
      "$${NodeRole}", local.node_role),
      "$${Queue}", local.queue),
    "$${RecordBucket}", var.record_bucket)
  }
}

resource "aws_iam_policy" "controller" {
  for_each = local.documents

  name   = "${each.key}-${var.cluster_name}"
  policy = each.value
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each = aws_iam_policy.controller

  role       = local.controller_role
  policy_arn = each.value.arn
}

# Of one ServiceAccount of this cluster alone: by EKS Pod Identity, or with an oidc_provider by IRSA.
resource "aws_iam_role" "controller" {
  count = var.controller_role_name == "" ? 1 : 0

  name = "DovetailController-${var.cluster_name}"
  assume_role_policy = var.oidc_provider == "" ? jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = ["pods.eks.amazonaws.com"] }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        StringEquals = {
          "aws:RequestTag/eks-cluster-arn"            = "arn:${local.partition}:eks:${local.region}:${local.account}:cluster/${var.cluster_name}"
          "aws:RequestTag/kubernetes-namespace"       = var.service_account_namespace
          "aws:RequestTag/kubernetes-service-account" = var.service_account_name
        }
      }
    }]
    }) : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Federated = "arn:${local.partition}:iam::${local.account}:oidc-provider/${var.oidc_provider}" }
      Action    = ["sts:AssumeRoleWithWebIdentity"]
      Condition = {
        StringEquals = {
          "${var.oidc_provider}:aud" = "sts.amazonaws.com"
          "${var.oidc_provider}:sub" = "system:serviceaccount:${var.service_account_namespace}:${var.service_account_name}"
        }
      }
    }]
  })
}

resource "aws_eks_pod_identity_association" "controller" {
  count = var.oidc_provider == "" && var.controller_role_name == "" ? 1 : 0

  cluster_name    = var.cluster_name
  namespace       = var.service_account_namespace
  service_account = var.service_account_name
  role_arn        = aws_iam_role.controller[0].arn
}

resource "aws_iam_role" "node" {
  count = var.node_role_name == "" ? 1 : 0

  name = local.node_role
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = ["ec2.${data.aws_partition.current.dns_suffix}"] }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = var.node_role_name == "" ? toset([
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ]) : toset([])

  role       = aws_iam_role.node[0].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.key}"
}

resource "aws_sqs_queue" "warnings" {
  count = var.queue_name == "" ? 1 : 0

  name                      = local.queue
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "warnings" {
  count = var.queue_name == "" ? 1 : 0

  queue_url = aws_sqs_queue.warnings[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Id      = "EC2InterruptionPolicy"
    Statement = [
      {
        Effect    = "Allow"
        Principal = { Service = ["events.amazonaws.com"] }
        Action    = ["sqs:SendMessage"]
        Resource  = aws_sqs_queue.warnings[0].arn
        # Any account's rules may name this queue as their target; only these of ours may write to it.
        Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.warnings : rule.arn] } }
      },
      {
        Sid       = "DenyHTTP"
        Effect    = "Deny"
        Principal = "*"
        Action    = ["sqs:*"]
        Resource  = aws_sqs_queue.warnings[0].arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

locals {
  warnings = {
    scheduled-change = { source = "aws.health", kind = "AWS Health Event" }
    spot             = { source = "aws.ec2", kind = "EC2 Spot Instance Interruption Warning" }
    rebalance        = { source = "aws.ec2", kind = "EC2 Instance Rebalance Recommendation" }
    state-change     = { source = "aws.ec2", kind = "EC2 Instance State-change Notification" }
    reservation      = { source = "aws.ec2", kind = "EC2 Capacity Reservation Instance Interruption Warning" }
  }
}

resource "aws_cloudwatch_event_rule" "warnings" {
  for_each = var.queue_name == "" ? local.warnings : {}

  name_prefix   = "dovetail-${each.key}-"
  event_pattern = jsonencode({ source = [each.value.source], "detail-type" = [each.value.kind] })
}

resource "aws_cloudwatch_event_target" "warnings" {
  for_each = aws_cloudwatch_event_rule.warnings

  rule      = each.value.name
  target_id = "DovetailInterruptionQueueTarget"
  arn       = aws_sqs_queue.warnings[0].arn
}
