variable "cluster_name" {
  description = "The EKS cluster's name; CLUSTER_NAME of the worker."
  type        = string
}

variable "node_role_name" {
  description = "A role for nodes that exists, by its name. Empty: DovetailNodeRole-<cluster> is made."
  type        = string
  default     = ""
}

variable "queue_name" {
  description = "A queue of warnings that exists and is filled, by its name. Empty: dovetail-<cluster> and its rules are made."
  type        = string
  default     = ""
}

variable "controller_role_name" {
  description = "A role of the workers that exists, by its name; the policies are attached to it. Empty: DovetailController-<cluster> is made."
  type        = string
  default     = ""
}

variable "oidc_provider" {
  description = "For IRSA, the cluster's OIDC provider without https://. Empty: EKS Pod Identity."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.oidc_provider, "https://")
    error_message = "Without https://: oidc.eks.REGION.amazonaws.com/id/…"
  }
}

variable "service_account_namespace" {
  description = "The namespace of the workers' ServiceAccount."
  type        = string
  default     = "dovetail"
}

variable "service_account_name" {
  description = "The workers' ServiceAccount."
  type        = string
  default     = "dovetail"
}

variable "record_bucket" {
  description = "A bucket that exists, in which the workers keep the record or decisions (DOVETAIL_RECORD, DOVETAIL_FLIGHTS). Empty: no rights on any."
  type        = string
  default     = ""
}
