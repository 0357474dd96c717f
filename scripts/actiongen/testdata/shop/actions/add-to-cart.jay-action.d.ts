// Generated from add-to-cart.jay-action by actiongen. Do not edit.

/** Puts a product into the user's cart. */
export interface CartAddToCartInput {
    productId: string;
    quantity?: number;
    options?: {
        colour?: "blue" | "off-white" | "red";
        gift?: boolean;
    };
    notes?: Array<string>;
}

export interface CartAddToCartOutput {
    items: number;
}
