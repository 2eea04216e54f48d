output "controller_role_name" {
  description = "The role of the workers."
  value       = local.controller_role
}

output "node_role_name" {
  description = "spec.role of an EC2NodeClass."
  value       = local.node_role
}

output "queue_name" {
  description = "INTERRUPTION_QUEUE of the worker."
  value       = local.queue
}
